export interface FloorOptions {
  readonly url: string;
  readonly nodes: number;
  readonly budget: number;
}

export type ToFloor = { readonly do: 'prepare'; readonly options: FloorOptions } | { readonly do: 'run' };

export type FromFloor =
  | { readonly says: 'prepared' }
  /** From before the first grant until the last release stood in the ledger and in its view. */
  | { readonly says: 'done'; readonly ms: number }
  | { readonly says: 'failed'; readonly error: string };
