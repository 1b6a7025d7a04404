import { fragmentId, reasonFor, type Config, type ConfigEntry, type Reason } from '#libs/contracts';
import type { FunctionKind } from './function-kind.js';
import { functionKindOf, namedIn, sectionsOf } from './table.js';

/** Every reason why the function objects of a node do not fit together. */
export function functionReasons({ fragments }: Config): readonly Reason[] {
  const objects = fragments.flatMap((entry): ObjectOfFunction[] => {
    const kind = functionKindOf(entry.kind);
    return kind === undefined ? [] : [{ kind, entry, id: fragmentId(entry) }];
  });
  if (objects.length === 0) return [];
  return [
    ...missingReasons(objects, new Set(fragments.map(fragmentId))),
    ...takenReasons(objects),
    ...sharedReasons(objects),
  ];
}

interface ObjectOfFunction {
  readonly kind: FunctionKind;
  readonly entry: ConfigEntry;
  readonly id: string;
}

/** References that lead nowhere. Names of invalid fragments count, so that one error is not reported as two. */
const missingReasons = (objects: readonly ObjectOfFunction[], names: ReadonlySet<string>): readonly Reason[] =>
  objects.flatMap(({ kind, entry, id }) =>
    namedIn(kind.fields, entry.spec).flatMap(({ field, at, name }): Reason[] => {
      const needs = `${String(field.refersTo)}/${name}`;
      if (field.refersTo === undefined || names.has(needs)) return [];
      return [{ ...reason(id, at, 'missing-reference', `the node has no ${needs}`), needs }];
    }),
  );

/** Objects with the name of something else in the same config file, such as an interface. */
function takenReasons(objects: readonly ObjectOfFunction[]): readonly Reason[] {
  const taken = new Map<string, { readonly id: string; readonly name: string; readonly what: string | undefined }>(
    objects.flatMap(({ kind, entry, id }) =>
      namedIn(kind.fields, entry.spec).flatMap(({ field, name }) =>
        field.isSection === true ? [[`${kind.space} ${name}`, { id, name, what: field.needs }] as const] : [],
      ),
    ),
  );
  return objects.flatMap(({ kind, entry, id }) =>
    sectionsOf(kind, entry.name, entry.spec).flatMap((section) => {
      const by = taken.get(section);
      if (by === undefined) return [];
      const message = `the name is taken by the ${by.what} ${by.name}, which ${by.id} uses: both are in one config file of the function. Choose another name`;
      return [reasonFor({ fragment: id, field: 'metadata.name' }, 'conflict', message)];
    }),
  );
}

/** Values that a function has only once. */
function sharedReasons(objects: readonly ObjectOfFunction[]): readonly Reason[] {
  const first = new Map<string, { readonly id: string; readonly value: unknown }>();
  return objects.flatMap(({ kind, entry, id }) =>
    Object.entries(kind.fields).flatMap(([key, field]): Reason[] => {
      if (field.isShared !== true) return [];
      const value = entry.spec[key] ?? field.otherwise;
      const known = first.get(`${kind.path} ${key}`) ?? { id, value };
      first.set(`${kind.path} ${key}`, known);
      if (known.value === value) return [];
      const message = `is ${String(value)}, and that of ${known.id} is ${String(known.value)}: a function has only one for all of them`;
      return [reason(id, key, 'conflict', message)];
    }),
  );
}

const reason = (fragment: string, at: string, code: string, message: string): Reason =>
  reasonFor({ fragment, field: `spec.${at}` }, code, message);
