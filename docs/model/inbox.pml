/*
 * The inbox: consumers take deliveries of a bus that delivers at least once, and mark each event in the transaction of its effect.
 * docs/model/README.md says which line models which statement. -DBUG_… plants an error.
 *
 * Every execution ends, because each fault uses up one of FAULTS: so what holds when nothing more can happen holds eventually.
 */
#ifndef CONSUMERS
#define CONSUMERS 2
#endif
#ifndef FAULTS
#define FAULTS 4
#endif
#define MESSAGES 2      /* of one event, which was published twice; different events share nothing */
#define ATTEMPTS 2      /* attemptsMax */

mtype = { READY, DELIVERED, ACKED, NOT, EFFECT, DEAD };

/* The bus. */
mtype message[MESSAGES] = READY;
byte handler[MESSAGES]; /* who handles the newest delivery, by consumer + 1; 0 if it died or gave it back */

/* The database. */
mtype mark = NOT;       /* the row of processed_events, once it is committed */
byte marking;           /* the open transaction that has inserted it, by consumer + 1: others wait for its end */
byte attempts;          /* inbox_attempts */
byte effects, dead;     /* committed effects, and rows of inbox_dlq */

byte begun;             /* attempts that began, for the assertions */
byte faults = FAULTS;

inline giveBack() {
  if
  :: message[m] == DELIVERED && handler[m] == c + 1 -> message[m] = READY; handler[m] = 0
  :: else
  fi
}

/* A crash rolls the open transaction back. The bus learns of it when the time for the ack is over. */
inline die() {
  faults--;
  if :: marking == c + 1 -> marking = 0 :: else fi;
  if :: handler[m] == c + 1 -> handler[m] = 0 :: else fi
}

inline commitEffect() {
  effects++;
  assert(effects == 1 && dead == 0)         /* once: an event takes effect once, and is not dead-lettered too */
}

inline ack() {
  assert(effects + dead > 0);               /* not lost: what is acked has taken effect or is a dead letter */
  message[m] = ACKED;
  handler[m] = 0
}

proctype consumer(byte c) {
  byte m, attempt;
  bool isNew;

idle:
end:
  if
  :: atomic { message[0] == READY -> m = 0 }
  :: atomic { message[1] == READY -> m = 1 }
  fi;
  atomic {
    if
    :: message[m] == READY -> message[m] = DELIVERED; handler[m] = c + 1
    :: else -> goto idle
    fi
  }
#ifdef BUG_ACK_BEFORE_COMMIT
  atomic { message[m] = ACKED; handler[m] = 0 }
#endif
  /* countAttempt: a statement of its own, before the attempt. */
  if
  :: atomic { mark != NOT -> goto acknowledge }
  :: atomic {
      mark == NOT ->
      attempt = attempts + 1;
#ifndef BUG_ATTEMPT_COUNTED_WITH_EFFECT
      attempts++
#endif
    }
  :: atomic { faults > 0 -> die(); goto idle }
  fi;
  if
  :: attempt > ATTEMPTS -> goto deadLetter
  :: else
  fi;
  atomic {
    assert(begun < ATTEMPTS);               /* poison: an event that kills its process is not tried without end */
    begun++
  }
  /* One transaction: insertProcessed, effect, commit. */
#ifdef BUG_CHECK_THEN_ACT
  isNew = (mark == NOT);
#else
  atomic {
    marking == 0 ->                         /* the unique key: an insert of the same row waits */
    if
    :: mark == NOT -> marking = c + 1; isNew = true
    :: else -> isNew = false
    fi
  }
#endif
  if
  :: !isNew -> goto acknowledge
  :: else
  fi;
#ifdef BUG_MARK_BEFORE_EFFECT
  atomic { mark = EFFECT; marking = 0 }
  if
  :: atomic { faults > 0 -> die(); goto idle }
  :: true
  fi;
#endif
#ifdef BUG_EFFECT_BEFORE_MARK
  atomic { commitEffect() }
  if
  :: atomic { faults > 0 -> die(); goto idle }
  :: true
  fi;
  atomic { mark = EFFECT; marking = 0; goto acknowledge }
#endif
  if
  :: atomic {                               /* committed */
      mark = EFFECT; marking = 0; attempts = 0; commitEffect();
      goto acknowledge
    }
  :: atomic {                               /* CommitUnknown, and it was committed */
      faults > 0 -> faults--; mark = EFFECT; marking = 0; attempts = 0; commitEffect();
      goto unknown
    }
  :: atomic { faults > 0 -> faults--; marking = 0; goto unknown } /* CommitUnknown, and it was not */
  :: atomic {                               /* the effect fails: rolled back */
      faults > 0 -> faults--; marking = 0;
#ifdef BUG_ATTEMPT_COUNTED_WITH_EFFECT
      attempts++;
#endif
      if
      :: attempt < ATTEMPTS -> giveBack(); goto idle
      :: else -> goto deadLetter
      fi
    }
  :: atomic { faults > 0 -> die(); goto idle }
  fi;

unknown:
#ifdef BUG_UNKNOWN_IS_SUCCESS
  goto acknowledge;
#endif
  atomic { giveBack(); goto idle }

deadLetter:
  /* insertDead: the mark and the row of the dead letter are one transaction. */
#ifdef BUG_DEAD_LETTER_WITHOUT_MARK
  atomic { dead++; assert(effects == 0 && dead == 1) } /* once: an effect, or a dead letter */
#else
  if
  :: atomic { mark == NOT && marking == 0 -> mark = DEAD; attempts = 0; dead++; assert(effects == 0 && dead == 1) } /* once: an effect, or a dead letter */
  :: atomic { mark != NOT -> skip }
  :: atomic { faults > 0 -> die(); goto idle }
  fi;
#endif

acknowledge:
  if
#ifdef BUG_ACK_BEFORE_COMMIT
  :: true
#else
  :: atomic { ack() }
#endif
  :: atomic { faults > 0 -> die() }
  fi;
  atomic { m = 0; attempt = 0; isNew = false; goto idle }
}

#define BUS(m) \
  :: d_step { message[m] == DELIVERED && handler[m] == 0 -> message[m] = READY } \
  :: d_step { message[m] == DELIVERED && handler[m] != 0 && faults > 0 -> message[m] = READY; faults-- }

/* A delivery without an ack comes again. If its consumer still works, that is a fault. */
active proctype bus() {
end:
  do
  BUS(0)
  BUS(1)
#ifdef BUG_MARKS_DELETED_TOO_EARLY
  :: d_step { mark == EFFECT && faults > 0 -> mark = NOT; faults-- }
#endif
  od
}

/* When nothing more can happen, both messages are acked, and the event has one effect or is one dead letter. */
active proctype monitor() {
end:
  timeout ->
  d_step {
    assert(message[0] == ACKED && message[1] == ACKED); /* finished: no message comes again without end */
    assert(effects + dead == 1)             /* once: one effect, or one dead letter */
  }
}

init {
  byte c = 0;
  atomic { do :: c < CONSUMERS -> run consumer(c); c++ :: else -> break od }
}
