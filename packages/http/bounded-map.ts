/** A map with a bound, for caches: a new entry evicts the oldest one. An entry that is set again becomes the newest. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #max: number;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
    if (this.size >= this.#max) {
      const [oldest] = this.keys();
      this.delete(oldest as Key);
    }
    return super.set(key, value);
  }
}
