import { expect, test } from "vitest";
import { type Asked, GroupQuestions } from "./group-questions.ts";
import type { ToProcess } from "./messages.ts";

/** `DataPointType.SUM` of OpenTelemetry. */
const sumOfOpenTelemetry = 3;

const jobs = (value: number) =>
  ({
    descriptor: { name: "jobs" },
    dataPointType: sumOfOpenTelemetry,
    isMonotonic: true,
    dataPoints: [{ attributes: {}, value }],
  }) as const;

/** A process that responds with what `answer` returns; undefined: never. */
function fakeProcess(questions: GroupQuestions, number: number, answer: () => unknown): Asked {
  const asked: Asked = {
    number,
    send(message: ToProcess) {
      const found = answer();
      if (message.kind === "ask" && found !== undefined) questions.answer(asked, { id: message.id, answer: found });
    },
  };
  return asked;
}

test("a question gets one answer of every process", async () => {
  const questions = new GroupQuestions();
  const processes = [1, 2].map((number) => fakeProcess(questions, number, () => true));
  expect(await questions.ask(processes, "liveness")).toEqual([
    { process: 1, answer: true },
    { process: 2, answer: true },
  ]);
});

test("a process that does not respond in time is reported; one that is gone is not waited for", async () => {
  const questions = new GroupQuestions();
  const [here, silent, gone] = [1, 2, 3].map((n) => fakeProcess(questions, n, () => (n === 1 ? true : undefined)));
  const asked = questions.ask([here, silent, gone] as Asked[], "liveness");
  questions.onGone(gone as Asked);
  expect(await asked).toEqual([
    { process: 1, answer: true },
    { process: 2, answer: undefined },
  ]);
});

test("what a process had counted at the last scrape stays in the sums after it is gone", async () => {
  const questions = new GroupQuestions();
  const [first, second] = [1, 2].map((n) => fakeProcess(questions, n, () => [jobs(n * 10)])) as [Asked, Asked];
  await questions.ask([first, second], "metrics");
  questions.onGone(first);
  const again = fakeProcess(questions, 1, () => [jobs(1)]);
  const answers = await questions.ask([again, second], "metrics");
  expect(
    answers.map(({ process, answer }) => [
      process,
      (answer as unknown as ReturnType<typeof jobs>[])[0]?.dataPoints[0]?.value,
    ]),
  ).toEqual([
    [1, 1],
    [2, 20],
    [0, 10],
  ]);
});
