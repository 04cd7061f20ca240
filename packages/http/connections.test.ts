import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { Connections } from "./connections.ts";

test("what waits for the answers of a connection runs once, however often it is asked for", () => {
  const connections = new Connections();
  const socket = new EventEmitter() as Socket;
  const response = Object.assign(new EventEmitter(), { req: { socket, complete: true } }) as unknown as ServerResponse;
  let runs = 0;

  connections.opened(socket);
  connections.began(response);
  for (let fault = 0; fault < 100; fault++) connections.afterAnswers(socket, () => void runs++);
  expect(response.listenerCount("close")).toBe(1);
  response.emit("close");

  expect(runs).toBe(1);
});

test("a connection that is gone is forgotten", () => {
  const connections = new Connections();
  const socket = new EventEmitter() as Socket;
  const response = Object.assign(new EventEmitter(), { req: { socket, complete: true } }) as unknown as ServerResponse;

  connections.opened(socket);
  connections.began(response);
  expect(connections.owing).toBe(1);
  socket.emit("close");

  expect(connections.owing).toBe(0);
});
