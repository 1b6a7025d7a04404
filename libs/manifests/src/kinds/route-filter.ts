import { Fields } from '../shape/description.js';
import { bitsOf, parseCidr } from '../network/ip-address.js';
import { NETWORK } from '../address.js';
import { Optional, Ruled, type Problem } from '../shape/checked.js';
import { Text, Whole, Word } from '../shape/forms.js';
import { isObject } from '../shape/reader.js';

const FILTER_ACTIONS = ['permit', 'deny'] as const;
const MAX_SEQ = 4_294_967_295;

/** One line of a list that permits or denies routes. */
@Ruled({
  problems: lengthProblems,
  schema: {},
  expressions: [
    {
      rule: '!has(self.ge) || !has(self.le) || self.ge <= self.le',
      message: 'ge is greater than le: no prefix length can match',
    },
  ],
})
@Fields({
  cidr: 'Network that a route must be in, such as `10.0.0.0/8`.',
  action: 'What to do with routes that match: `permit` or `deny`.',
  seq: 'Position in the list; lower numbers are tried first. Default: the position in this list, starting at 1.',
  ge: 'Shortest prefix length that matches. Without `ge` and `le` only the network itself matches.',
  le: 'Longest prefix length that matches.',
})
export class RouteFilter {
  @Text(NETWORK) readonly cidr!: string;
  @Word(FILTER_ACTIONS) readonly action!: (typeof FILTER_ACTIONS)[number];
  @Optional() @Whole(1, MAX_SEQ) readonly seq?: number;
  @Optional() @Whole(0, 128) readonly ge?: number;
  @Optional() @Whole(0, 128) readonly le?: number;
}

/** Conflicts between the lines of these lists: duplicate lines, or two lines with the same seq. */
export const filterLists = (...fields: readonly string[]): ClassDecorator =>
  Ruled({ problems: (object) => fields.flatMap((field) => listProblems(field, object[field])), schema: {} });

function lengthProblems(filter: Readonly<Record<string, unknown>>): readonly Problem[] {
  const cidr = typeof filter['cidr'] === 'string' ? parseCidr(filter['cidr']) : undefined;
  const [ge, le] = [numberOf(filter['ge']), numberOf(filter['le'])];
  const problems: Problem[] = [];
  const range = (at: string, length: number | undefined): void => {
    if (cidr === undefined || length === undefined || (length >= cidr.prefix && length <= bitsOf(cidr.family))) return;
    problems.push({
      at,
      code: 'out-of-range',
      message: `must be from ${cidr.prefix}, the length of ${String(filter['cidr'])}, to ${bitsOf(cidr.family)}, but is ${length}`,
    });
  };
  range('ge', ge);
  range('le', le);
  if (ge !== undefined && le !== undefined && ge > le)
    problems.push({
      at: '',
      code: 'out-of-range',
      message: `ge ${ge} is greater than le ${le}: no prefix length can match`,
    });
  return problems;
}

function listProblems(field: string, list: unknown): readonly Problem[] {
  if (!Array.isArray(list)) return [];
  const problems: Problem[] = [];
  const lines = new Map<string, number>();
  const places = new Map<number, number>();
  for (const [i, item] of (list as readonly unknown[]).entries()) {
    if (!isObject(item)) continue;
    const line = JSON.stringify([item['cidr'], item['action'], item['ge'], item['le']]);
    const seq = numberOf(item['seq']) ?? i + 1;
    const [same, place] = [lines.get(line), places.get(seq)];
    if (same !== undefined)
      problems.push({ at: `${field}[${i}]`, code: 'duplicate', message: `is the same as ${field}[${same}]` });
    else if (place !== undefined)
      problems.push({
        at: `${field}[${i}].seq`,
        code: 'duplicate',
        message: `${field}[${place}] already has seq ${seq}; the default seq is the position in the list, starting at 1`,
      });
    lines.set(line, same ?? i);
    places.set(seq, place ?? i);
  }
  return problems;
}

const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);
