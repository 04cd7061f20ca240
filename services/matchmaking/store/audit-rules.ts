/** Rules between matches, ends of tickets and tickets that wait in PostgreSQL. */
import { type AuditSpec, eventExists } from "@todoke/kernel/audit";

export const matchmakingAudit: AuditSpec = {
  checked: { matches: "matches", "ended tickets": "ticket_ends", "waiting tickets": "tickets" },
  rules: {
    "nobody is in two matches at a time": `
    select ticket_id as about, format('%s joined %s at %s, while the ticket of the match before was matched at %s', user_id, mode, joined_at, before) as detail
      from (select ticket_id, user_id, mode, joined_at, lag(ended_at) over (partition by user_id, mode order by ended_at, ticket_id) as before
              from ticket_ends where status = 'MATCHED') t
     where joined_at < before`,
    "no ticket that ended waits": `
    select t.ticket_id as about, format('%s in %s ended as %s at %s', t.user_id, t.mode, e.status, e.ended_at) as detail
      from tickets t join ticket_ends e using (ticket_id)`,
    "every match has at least two players of its mode": `
    select m.match_id::text as about, format('%s tickets with %s players in %s', count(e.ticket_id), coalesce(sum(e.party_size), 0), m.mode) as detail
      from matches m left join ticket_ends e on e.match_id = m.match_id and e.mode = m.mode
     group by m.match_id, m.mode
    having coalesce(sum(e.party_size), 0) < 2
        or count(e.ticket_id) <> (select count(*) from ticket_ends a where a.match_id = m.match_id)`,
    "every match has its event": `
    select m.match_id::text as about, format('recorded at %s', m.recorded_at) as detail
      from matches m
     where m.recorded_at > (select since from kept) and not ${eventExists("o.aggregate_key = m.match_id::text")}`,
  },
};
