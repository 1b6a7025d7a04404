/** A step into a value: the name of a field, or the place in a list. */
type Step = string | number;

const STEP = /^(?:\.?([A-Za-z_][A-Za-z0-9_-]*)|\['([^']+)'\]|\[(\d{1,4})\])/;

/**
 * The steps of a path such as `data.region`, `metadata.labels['example.com/zone']` or `status.addresses[0].ip`, as in
 * the `fieldPath` of a pod; undefined if it is none.
 */
export function fieldSteps(path: string): readonly Step[] | undefined {
  const steps: Step[] = [];
  let rest = path;
  while (rest !== '') {
    const found = STEP.exec(rest);
    if (found === null || (steps.length === 0 && found[1] === undefined) || rest === '.') return undefined;
    if (steps.length > 0 && found[1] !== undefined && !rest.startsWith('.')) return undefined;
    if (steps.length === 0 && rest.startsWith('.')) return undefined;
    steps.push(found[1] ?? found[2] ?? Number(found[3]));
    rest = rest.slice(found[0].length);
  }
  return steps.length === 0 ? undefined : steps;
}

/** What an object has there; undefined if it has nothing there. */
export function fieldAt(object: unknown, path: string): unknown {
  let value: unknown = object;
  for (const step of fieldSteps(path) ?? []) {
    if (typeof value !== 'object' || value === null) return undefined;
    if (Array.isArray(value) !== (typeof step === 'number') || !Object.hasOwn(value, step)) return undefined;
    value = (value as Readonly<Record<Step, unknown>>)[step];
  }
  return value;
}
