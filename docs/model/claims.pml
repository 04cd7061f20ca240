/*
 * The claim engine: workers claim rows under a lease, publish them in the order of their aggregate, and settle them under the
 * epoch of their claim. docs/model/README.md says which line models which statement. -DBUG_… plants an error.
 *
 * Every execution ends, because each fault uses up one of FAULTS: so what holds when nothing more can happen holds eventually.
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef FAULTS
#define FAULTS 3
#endif
#define ROWS 2          /* of one aggregate; rows of different aggregates share nothing but the limit of a claim */
#ifndef LIMIT
#define LIMIT 2         /* rows per claim */
#endif
#define ATTEMPTS 2      /* attemptsMax */

mtype = { READY, CLAIMED, DONE, DEAD, RETRY, RELEASE, NONE };

/* The table. */
mtype status[ROWS] = READY;
bool leased[ROWS];      /* lease_until is not null */
bool live[ROWS];        /* lease_until > now */
bool waiting[ROWS];     /* next_retry_at > now */
byte epoch[ROWS];
byte attempts[ROWS];
byte locked[ROWS];      /* the row lock of an open claim statement, by worker + 1 */

/* What really happened, for the assertions only. */
byte holder[ROWS];      /* who got the newest claim, by worker + 1; 0 once it is settled or its worker has died */
byte owner[ROWS];       /* who got the newest claim, until the next one */
byte begun[ROWS];       /* attempts that began and were not released */
bool published[ROWS];
byte faults = FAULTS;

#ifdef BUG_NO_EXPIRY
#define EXPIRED(r) false
#else
#define EXPIRED(r) (status[r] == CLAIMED && leased[r] && !live[r])
#endif
#define DUE(r) ((status[r] == READY && !waiting[r]) || EXPIRED(r))

#ifdef BUG_DEAD_IS_FINISHED
#define FINISHED(r) (status[r] == DONE || status[r] == DEAD)
#else
#define FINISHED(r) (status[r] == DONE)
#endif

#define CLAIMABLE(r) (DUE(r) && (r != 1 || FINISHED(0) || DUE(0)))

#ifdef BUG_CONTINUE_AFTER_FAILURE
#define BEHIND_FAILURE false
#else
#define BEHIND_FAILURE (r == 1 && blocked)
#endif

/* The fence of renew and settle: isOurClaim. */
#ifdef BUG_NO_EPOCH_FENCE
#define OUR_CLAIM(r) (leased[r])
#else
#ifdef BUG_SETTLE_WITHOUT_LEASE
#define OUR_CLAIM(r) (epoch[r] == myEpoch[r])
#else
#define OUR_CLAIM(r) (leased[r] && epoch[r] == myEpoch[r])
#endif
#endif

inline settleRow(result) {
  if
  :: mine[r] && OUR_CLAIM(r) ->
    assert(owner[r] == w + 1);          /* fence: nobody ends the claim of another worker */
    assert(status[r] == CLAIMED);       /* final: what is settled is not settled again */
    leased[r] = false;
    live[r] = false;
    holder[r] = 0;
    if
    :: result == DONE -> status[r] = DONE
    :: result == DEAD -> status[r] = DEAD
    :: result == RETRY -> status[r] = READY; waiting[r] = true
    :: result == RELEASE ->
      status[r] = READY;
#ifndef BUG_COUNT_AT_SETTLE
      attempts[r]--;
#endif
      if :: myBegun[r] -> begun[r]-- :: else fi
    fi;
#ifdef BUG_COUNT_AT_SETTLE
    if :: result != RELEASE -> attempts[r]++ :: else fi
#endif
  :: else
  fi
}

inline die() {
  d_step {
    faults--;
    for (r : 0 .. ROWS - 1) {
      if :: locked[r] == w + 1 -> locked[r] = 0 :: else fi;
      if :: holder[r] == w + 1 -> holder[r] = 0 :: else fi;
      mine[r] = false; candidate[r] = false; outcome[r] = NONE; myBegun[r] = false; myEpoch[r] = 0
    }
    r = 0; count = 0; blocked = false
  }
}

proctype worker(byte w) {
  bool seenDue[ROWS], seenFinished[ROWS], seenBlocked; /* the snapshot of the claim statement */
  bool candidate[ROWS], mine[ROWS], myBegun[ROWS];
  byte myEpoch[ROWS], myAttempt[ROWS];
  mtype outcome[ROWS] = NONE;
  byte r, count;
  bool blocked, excluded;

idle:
end:
  /* Claim: the statement takes its snapshot. A claim that would find nothing is left out. */
  atomic {
    (CLAIMABLE(0) || CLAIMABLE(1)) ->
    seenBlocked = false;
    for (r : 0 .. ROWS - 1) {
      seenDue[r] = DUE(r);
      seenFinished[r] = FINISHED(r);
      if
      :: (status[r] == CLAIMED && live[r]) || status[r] == DEAD || waiting[r] -> seenBlocked = true
      :: else
      fi
    }
    r = 0; count = 0
  }
  /* for update skip locked: row by row, each on its newest version. */
  do
  :: r == ROWS -> break
  :: atomic { r < ROWS && faults > 0 -> die() }; goto idle
  :: r < ROWS ->
    d_step {
      if
#ifdef BUG_CLAIM_BY_SNAPSHOT
      :: seenDue[r] && count < LIMIT -> candidate[r] = true; count++
#else
      :: seenDue[r] && count < LIMIT && locked[r] == 0 && DUE(r) -> locked[r] = w + 1; candidate[r] = true; count++
#endif
      :: else
      fi;
      r++
    }
  od;
  /* update … returning, and commit. */
  atomic {
    for (r : 0 .. ROWS - 1) {
      if
      :: candidate[r] ->
        excluded = false;
#ifdef BUG_PARALLEL_IN_AGGREGATE
        skip;
#else
#ifdef BUG_BLOCKED_AGGREGATES_ONLY
        excluded = seenBlocked && status[r] == READY;
#else
        if :: r == 1 && !seenFinished[0] && !candidate[0] -> excluded = true :: else fi;
#endif
#endif
        if
        :: !excluded ->
          assert(!(leased[r] && live[r]));  /* exclusive: a live lease is never taken */
          status[r] = CLAIMED;
          epoch[r]++;
#ifndef BUG_COUNT_AT_SETTLE
          attempts[r]++;
#endif
          leased[r] = true; live[r] = true;
          holder[r] = w + 1; owner[r] = w + 1;
          mine[r] = true; myEpoch[r] = epoch[r];
#ifdef BUG_COUNT_AT_SETTLE
          myAttempt[r] = attempts[r] + 1
#else
          myAttempt[r] = attempts[r]
#endif
        :: else
        fi;
        if :: locked[r] == w + 1 -> locked[r] = 0 :: else fi
      :: else
      fi
    }
    for (r : 0 .. ROWS - 1) { candidate[r] = false; seenDue[r] = false; seenFinished[r] = false }
    seenBlocked = false; excluded = false; r = 0; count = 0
  }
#ifdef BUG_SETTLE_BEFORE_PUBLISH
  atomic { for (r : 0 .. ROWS - 1) { settleRow(DONE) } r = 0 }
#endif
  /* inAggregateOrder: one row after the other; after one that is not done, the rest of its aggregate is released. */
  do
  :: r == ROWS -> break
  :: atomic { r < ROWS && (mine[0] || mine[1]) && faults > 0 -> die() }; goto idle
  :: r < ROWS ->
    if
    :: !mine[r] -> r++
    :: mine[r] && myAttempt[r] > ATTEMPTS -> outcome[r] = DEAD; blocked = (r == 0); r++
    :: mine[r] && myAttempt[r] <= ATTEMPTS && BEHIND_FAILURE -> outcome[r] = RELEASE; r++
    :: mine[r] && myAttempt[r] <= ATTEMPTS && !BEHIND_FAILURE ->
      d_step {
        assert(begun[r] < ATTEMPTS);        /* poison: work that kills its process does not begin without end */
        begun[r]++;
        myBegun[r] = true
      }
      if
      :: d_step {
          assert(r != 1 || published[0]);   /* order: the events of an aggregate are published in their order */
          published[r] = true;
          outcome[r] = DONE;
          r++
        }
      :: d_step {
          faults > 0 ->
          faults--;
          outcome[r] = (myAttempt[r] < ATTEMPTS -> RETRY : DEAD);
          blocked = (r == 0);
          r++
        }
      :: atomic { faults > 0 -> die() }; goto idle
      fi
    fi
  od;
  /* Settle: one statement for the batch. */
  if
  :: atomic { faults > 0 && (mine[0] || mine[1]) -> die() }; goto idle
  :: true
  fi;
#ifndef BUG_SETTLE_BEFORE_PUBLISH
  atomic { for (r : 0 .. ROWS - 1) { settleRow(outcome[r]) } r = 0 }
#endif
  /* A stop may release what was settled a moment ago. */
  if
  :: d_step { faults > 0 && (mine[0] || mine[1]) -> faults--; for (r : 0 .. ROWS - 1) { settleRow(RELEASE) } r = 0 }
  :: true
  fi;
  atomic {
    for (r : 0 .. ROWS - 1) { mine[r] = false; outcome[r] = NONE; myBegun[r] = false; myEpoch[r] = 0; myAttempt[r] = 0 }
    r = 0; blocked = false
  }
  goto idle
}

#define CLOCK(r) \
  :: d_step { live[r] && holder[r] == 0 -> live[r] = false } \
  :: d_step { live[r] && holder[r] != 0 && faults > 0 -> live[r] = false; faults-- } \
  :: d_step { waiting[r] -> waiting[r] = false }

/* The lease of a worker that died ends for free; that of a slow one is a fault. */
active proctype clock() {
end:
  do
  CLOCK(0)
  CLOCK(1)
  od
}

/* When nothing more can happen, every row is DONE, DEAD, or parked behind a DEAD one. */
active proctype monitor() {
end:
  timeout ->
  d_step {
    assert(status[0] == DONE || status[0] == DEAD);                         /* finished: no row waits without end */
    assert(status[1] == DONE || status[1] == DEAD || status[0] == DEAD);    /* finished: unless it is parked */
    assert((status[0] != DONE || published[0]) && (status[1] != DONE || published[1])) /* not lost: DONE is published */
  }
}

init {
  byte w = 0;
  atomic { do :: w < WORKERS -> run worker(w); w++ :: else -> break od }
}
