/** A text of which a function takes only some. `libs/manifests/src/kinds/functions/forms.ts` says which. */
export type FormName =
  | 'address'
  | 'certificates'
  | 'connection'
  | 'device'
  | 'extra'
  | 'fwmark'
  | 'gateway'
  | 'host'
  | 'hub'
  | 'identifier'
  | 'interface'
  | 'ip'
  | 'mac'
  | 'mark'
  | 'maskedIp'
  | 'natTarget'
  | 'network'
  | 'reference'
  | 'routeTarget'
  | 'script'
  | 'secret'
  | 'sourceIps'
  | 'subnets'
  | 'table'
  | 'zone';

/** What a field holds. A number may be written as a text too, because that is how a function writes it. */
export type FieldValue =
  | { readonly form: FormName }
  | { readonly words: readonly string[] }
  | { readonly least: number; readonly most: number }
  | { readonly flag: true }
  | { readonly fields: Fields };

/** A field of a spec, and what becomes of it in the object of the function. */
export type Field = FieldValue & {
  /** For people. */
  readonly about: string;
  readonly list?: true;
  readonly required?: true;
  /** `""` is the same as leaving it out. */
  readonly mayBeEmpty?: true;
  /** Its name in the object, if that is another one. */
  readonly wire?: string;
  /** How the function writes the value if it was left out. */
  readonly otherwise?: string | boolean;
  /** The kind of the fragment that the value names. */
  readonly refersTo?: string;
  /** The value names something else that the function must have, such as an interface. */
  readonly needs?: 'interface';
  /** What the value names is a section in the config file of the kind, so no object there can have the name. */
  readonly isSection?: true;
  /** The function has one value for all objects of the collection. */
  readonly isShared?: true;
  /** The function does not store it, so it cannot be compared. */
  readonly isDropped?: true;
  /** A list that is sent as one text with commas. */
  readonly isJoined?: true;
  /** A list of objects whose order the function changes. */
  readonly isUnordered?: true;
};
export type Fields = Readonly<Record<string, Field>>;

/** A condition on a field of the same object. Without words: the field is given. */
export interface When {
  readonly field: string;
  readonly is?: readonly string[];
}

/** A rule about several fields of a spec, or of an object in one of its lists. */
export type FieldRule =
  | { readonly rule: 'needs'; readonly when?: When; readonly oneOf: readonly string[]; readonly why: string }
  /** The other field must be given, with one of these words. */
  | {
      readonly rule: 'needs-word';
      readonly when: When;
      readonly field: string;
      readonly is: readonly string[];
      readonly why: string;
    }
  | { readonly rule: 'forbids'; readonly when: When; readonly fields: readonly string[]; readonly why: string }
  /** The word is only allowed with the condition. */
  | {
      readonly rule: 'only-when';
      readonly field: string;
      readonly is: string;
      readonly when: When;
      readonly why: string;
    }
  /** The field is an address without the length of a network. */
  | { readonly rule: 'no-mask'; readonly when: When; readonly field: string; readonly why: string }
  /** No two objects of the list have the same value there. */
  | { readonly rule: 'unique'; readonly list: string; readonly field: string; readonly why: string };

/** A service of a function that has to read the change. */
export interface ServiceAction {
  readonly service: 'mwan3' | 'firewall' | 'ipsec';
  readonly action: 'restart' | 'reload';
}

/** Everything that is particular about one kind of object of a network function (SD-EWAN CNF). Plain data. */
export interface FunctionKind {
  readonly kind: string;
  /** For people. */
  readonly about: string;
  /** The path of the collection below `sdewan/`, and the field of the answer that holds the list. */
  readonly path: string;
  readonly collection: string;
  /**
   * `conflicts`: its objects are named sections, and a second POST is answered 409. `doubles`: a second POST makes a
   * second object of the same name.
   */
  readonly post: 'conflicts' | 'doubles';
  /** The name space of named sections, such as `mwan3 section`; of other objects, one per collection. */
  readonly space: string;
  /** Undefined if a change takes effect at once. */
  readonly after?: ServiceAction;
  /** Whether a wrong object can cut off the function from its applier: it filters or redirects traffic of any kind. */
  readonly mayCutOff?: true;
  /** The longest name. */
  readonly maxName?: number;
  /** What every object of the kind has, besides its fields. */
  readonly fixed?: Readonly<Record<string, string>>;
  /** How the function writes a field that no spec has. */
  readonly added?: Readonly<Record<string, string>>;
  readonly fields: Fields;
  readonly rules?: readonly FieldRule[];
  /** The names in this list are sections as well, in the same name space. */
  readonly sections?: { readonly list: string; readonly field: string };
}
