/** All that the ledger refuses by itself. Clients branch on the codes: they never change; docs/errors.md lists them. */
import { problem } from "@todoke/kernel/problem";

export const insufficientPoints = problem({
  code: "insufficient-points",
  status: 409,
  title: "The user does not have that many points",
});

export const balanceOverflow = problem({
  code: "balance-overflow",
  status: 409,
  title: "The user would have more points than can be counted",
});

export const tooManyLots = problem({
  code: "too-many-lots",
  status: 422,
  title: "The points lie in too many grants to be taken at once",
});

export const lotEndInThePast = problem({
  code: "lot-end-in-the-past",
  status: 422,
  title: "The points would have run out already",
});

export const holdNotFound = problem({ code: "hold-not-found", status: 404, title: "There is no such hold" });

export const holdEnded = problem({ code: "hold-ended", status: 409, title: "The hold is over" });

export const captureTooLarge = problem({
  code: "capture-too-large",
  status: 422,
  title: "The hold has fewer points than were to be captured",
});

export const transactionNotFound = problem({
  code: "transaction-not-found",
  status: 404,
  title: "There is no such transaction",
});

export const notRefundable = problem({
  code: "not-refundable",
  status: 422,
  title: "The transaction spent nothing that could be given back",
});

export const refundTooLarge = problem({
  code: "refund-too-large",
  status: 409,
  title: "The transaction has less left to be given back",
});
