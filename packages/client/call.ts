/** The result of a client's method: a promise of the data, with access to the response and the pages. */
import type { Answer } from "./execute.ts";

/** The request is sent at once, not when the call is awaited. */
export class Call<Data> implements PromiseLike<Data> {
  readonly #answer: Promise<Answer<Data>>;

  constructor(answer: Promise<Answer<Data>>) {
    this.#answer = answer;
  }

  // biome-ignore lint/suspicious/noThenProperty: `await` uses it.
  then<Result = Data, Other = never>(
    onData?: ((data: Data) => Result | PromiseLike<Result>) | null,
    onError?: ((error: unknown) => Other | PromiseLike<Other>) | null,
  ): Promise<Result | Other> {
    return this.#answer.then(({ data }) => data).then(onData, onError);
  }

  catch<Other = never>(onError?: ((error: unknown) => Other | PromiseLike<Other>) | null): Promise<Data | Other> {
    return this.then(undefined, onError);
  }

  finally(onEnd?: (() => void) | null): Promise<Data> {
    return this.then().finally(onEnd);
  }

  /** The result with the response, the number of attempts, and whether it is a replay. */
  withResponse(): Promise<Answer<Data>> {
    return this.#answer;
  }
}

interface Page {
  readonly next_cursor?: string;
}

/** The first page if it is awaited; every item of every page in `for await`. */
export class PagedCall<Data extends Page, Item> extends Call<Data> implements AsyncIterable<Item> {
  readonly #readPage: (cursor: string) => PromiseLike<Data>;
  readonly #itemsOf: (page: Data) => readonly Item[];

  constructor(
    first: Promise<Answer<Data>>,
    readPage: (cursor: string) => PromiseLike<Data>,
    itemsOf: (page: Data) => readonly Item[],
  ) {
    super(first);
    this.#readPage = readPage;
    this.#itemsOf = itemsOf;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages()) yield* this.#itemsOf(page);
  }

  /** Reads the next page only when the loop asks for it. */
  async *pages(): AsyncGenerator<Data, void, undefined> {
    let page: Data = await this;
    for (;;) {
      yield page;
      if (page.next_cursor === undefined) return;
      page = await this.#readPage(page.next_cursor);
    }
  }
}
