// Functions that Node 20 or 22 lacks and the packages use. Only the published packages load this file; each function is the
// standard one, and is added only where it is missing.

Promise.withResolvers ??= function withResolvers() {
  let resolve, reject;
  const promise = new this((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
};

Promise.try ??= function attempt(run, ...args) {
  return new this((resolve) => resolve(run(...args)));
};

Map.groupBy ??= function groupBy(items, keyOf) {
  const groups = new Map();
  let index = 0;
  for (const item of items) {
    const key = keyOf(item, index++);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
};

URL.parse ??= function parse(url, base) {
  return URL.canParse(url, base) ? new URL(url, base) : null;
};

globalThis.AsyncDisposableStack ??= class AsyncDisposableStack {
  #parts = [];
  #disposed = false;

  get disposed() {
    return this.#disposed;
  }

  use(part) {
    const dispose = part?.[Symbol.asyncDispose] ?? part?.[Symbol.dispose];
    if (part !== null && part !== undefined) this.defer(() => dispose.call(part));
    return part;
  }

  adopt(part, dispose) {
    this.defer(() => dispose(part));
    return part;
  }

  defer(dispose) {
    if (this.#disposed) throw new ReferenceError("the stack is disposed");
    this.#parts.push(dispose);
  }

  move() {
    const moved = new AsyncDisposableStack();
    moved.#parts = this.#parts;
    this.#parts = [];
    this.#disposed = true;
    return moved;
  }

  async disposeAsync() {
    if (this.#disposed) return;
    this.#disposed = true;
    const errors = [];
    for (const dispose of this.#parts.reverse()) {
      try {
        await dispose();
      } catch (error) {
        errors.push(error);
      }
    }
    this.#parts = [];
    if (errors.length === 1) throw errors[0];
    if (errors.length > 1) throw new AggregateError(errors, "several parts could not be disposed");
  }

  [Symbol.asyncDispose]() {
    return this.disposeAsync();
  }
};
