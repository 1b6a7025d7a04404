import type { JsonObject, Message } from '@bufbuild/protobuf';

/** The plain, readonly form of a generated message, as cores and JSON bodies use it. */
export type Plain<T> = T extends JsonObject & { $typeName?: never }
  ? T
  : T extends Message
    ? { readonly [K in keyof T as K extends '$typeName' | '$unknown' ? never : K]: Plain<T[K]> }
    : T extends readonly (infer U)[]
      ? readonly Plain<U>[]
      : T extends object
        ? { readonly [K in keyof T]: Plain<T[K]> }
        : T;

/** The plain form with some fields replaced by narrower ones. */
export type Narrow<T, N> = Omit<Plain<T>, keyof N> & Readonly<N>;
