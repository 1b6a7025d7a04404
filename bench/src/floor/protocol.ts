export interface FloorOptions {
  readonly url: string;
  readonly nodes: number;
  readonly budget: number;
}

export type ToFloor = { readonly do: 'prepare'; readonly options: FloorOptions } | { readonly do: 'run' };

export type FromFloor =
  | { readonly type: 'prepared' }
  /** From before the first grant until the last release was stored in the ledger and in its view. */
  | { readonly type: 'done'; readonly ms: number }
  | { readonly type: 'failed'; readonly error: string };
