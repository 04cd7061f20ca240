/** The problems of the routes that every service has. docs/errors.md lists them (a test compares). */
import { problem } from "@todoke/kernel/problem";

export const failedEventNotFound = problem({
  code: "failed-event-not-found",
  status: 404,
  title: "No FAILED event has this id",
});

export const deadLetterNotFound = problem({
  code: "dead-letter-not-found",
  status: 404,
  title: "There is no such dead letter",
});
