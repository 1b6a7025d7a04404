/**
 * State whose changes can be undone, with an undo log as in databases. A decision folds its own facts, so that each
 * step sees the ones before it, and undoes all of them at the end.
 */
export class UndoLog {
  private entries: (() => void)[] | undefined;

  /** Records how to undo a change. Does nothing outside a trial. */
  note(undo: () => void): void {
    this.entries?.push(undo);
  }

  get trying(): boolean {
    return this.entries !== undefined;
  }

  /** Runs `trial` and undoes everything that it changed. */
  dryRun<T>(trial: () => T): T {
    if (this.entries !== undefined) throw new Error('a trial inside a trial');
    const entries: (() => void)[] = [];
    this.entries = entries;
    try {
      return trial();
    } finally {
      this.entries = undefined;
      for (let i = entries.length - 1; i >= 0; i--) entries[i]?.();
    }
  }
}

/** A map of readonly values whose changes can be undone. Decisions must not depend on its iteration order. */
export class Table<K, V> {
  private readonly rows = new Map<K, V>();

  constructor(
    private readonly log: UndoLog,
    rows: Iterable<readonly [K, V]> = [],
  ) {
    for (const [key, value] of rows) this.rows.set(key, value);
  }

  get size(): number {
    return this.rows.size;
  }

  get(key: K): V | undefined {
    return this.rows.get(key);
  }

  has(key: K): boolean {
    return this.rows.has(key);
  }

  set(key: K, value: V): void {
    if (this.log.trying) {
      const before = this.rows.get(key);
      this.log.note(before === undefined ? () => this.rows.delete(key) : () => this.rows.set(key, before));
    }
    this.rows.set(key, value);
  }

  delete(key: K): void {
    const before = this.rows.get(key);
    if (before === undefined) return;
    this.log.note(() => this.rows.set(key, before));
    this.rows.delete(key);
  }

  keys(): IterableIterator<K> {
    return this.rows.keys();
  }

  values(): IterableIterator<V> {
    return this.rows.values();
  }

  entries(): IterableIterator<[K, V]> {
    return this.rows.entries();
  }
}

interface AnyTable {
  entries(): Iterable<readonly [string, unknown]>;
  set(key: string, value: never): void;
}
type Tables<N extends string> = Readonly<Record<N, AnyTable>>;

/** The rows of these tables by table name, for a dump. */
export const dumpTables = <N extends string>(state: Tables<N>, names: readonly N[]): Record<N, unknown> =>
  Object.fromEntries(names.map((name) => [name, [...state[name].entries()]])) as Record<N, unknown>;

/** Fills these tables from a result of `dumpTables`. */
export function loadTables<N extends string>(state: Tables<N>, names: readonly N[], dumped: unknown): void {
  const rows = dumped as Record<N, readonly (readonly [string, never])[]>;
  for (const name of names) for (const [key, value] of rows[name]) state[name].set(key, value);
}

/** One readonly value whose changes can be undone. */
export class Cell<T> {
  constructor(
    private readonly log: UndoLog,
    private value: T,
  ) {}

  get(): T {
    return this.value;
  }

  set(value: T): void {
    const before = this.value;
    this.log.note(() => {
      this.value = before;
    });
    this.value = value;
  }
}

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/**
 * A sorted set of strings. The default order is by code unit; `order` returns 0 only for equal strings. It is a sorted
 * array: adding and removing an item moves memory, which is fast up to 100,000 items.
 */
export class SortedSet {
  private readonly items: string[] = [];

  constructor(
    private readonly log: UndoLog,
    private readonly order: (a: string, b: string) => number = byText,
  ) {}

  get size(): number {
    return this.items.length;
  }

  add(item: string): void {
    const at = this.place(item);
    if (this.items[at] === item) return;
    this.items.splice(at, 0, item);
    this.log.note(() => this.delete(item));
  }

  delete(item: string): void {
    const at = this.place(item);
    if (this.items[at] !== item) return;
    this.items.splice(at, 1);
    this.log.note(() => this.add(item));
  }

  /** Adds or deletes the item. */
  toggle(item: string, isMember: boolean): void {
    if (isMember) this.add(item);
    else this.delete(item);
  }

  has(item: string): boolean {
    return this.items[this.place(item)] === item;
  }

  /** The first few items, in order. */
  first(count: number): readonly string[] {
    return this.items.slice(0, count);
  }

  /** The items in order. The set must not change during the iteration; copy it first if it may. */
  [Symbol.iterator](): IterableIterator<string> {
    return this.items[Symbol.iterator]();
  }

  private place(item: string): number {
    let low = 0;
    let high = this.items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.order(this.items[middle] as string, item) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
