/** What of an object of the API server this library reads; all of it is somebody else's to write. */
export interface RawObject {
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly generation?: number;
    readonly creationTimestamp?: string;
    readonly deletionTimestamp?: string;
    readonly deletionGracePeriodSeconds?: number;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
    readonly ownerReferences?: readonly {
      readonly kind?: string;
      readonly name?: string;
      readonly controller?: boolean;
    }[];
    readonly managedFields?: readonly {
      readonly manager?: string;
      readonly subresource?: string;
      readonly fieldsV1?: Readonly<Record<string, unknown>>;
    }[];
  };
}

export interface RawList<T extends RawObject> {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly T[];
}
