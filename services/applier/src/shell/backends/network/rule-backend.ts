import { parseAddress, parseCidr, type LookupRule } from '#libs/manifests/lean';
import { ElementBackend, type ElementState } from './element-backend.js';
import { PROTOCOL } from './tools.js';

interface RuleRow {
  readonly priority?: number;
  readonly src?: string;
  readonly srclen?: number;
  readonly dst?: string;
  readonly dstlen?: number;
  readonly iif?: string;
  readonly table?: string;
  readonly protocol?: string;
}

/** A rule that looks up a table; it has nothing besides what names it. */
export class RuleBackend extends ElementBackend<LookupRule> {
  readonly kind = 'NetworkRule';

  protected async stateOf(rule: LookupRule, fresh: boolean): Promise<ElementState | undefined> {
    const shown = await this.tools.rows<RuleRow>([familyWord(rule), 'rule', 'show'], fresh ? [] : undefined);
    const same = shown.filter((one) => isSame(rule, one));
    return same.length === 0
      ? undefined
      : { ours: same.some(({ protocol }) => protocol === PROTOCOL), differs: undefined };
  }

  protected async make(rule: LookupRule): Promise<void> {
    await this.tools.run(['ip', familyWord(rule), 'rule', 'add', ...words(rule)]);
  }

  protected async remove(rule: LookupRule): Promise<void> {
    await this.tools.remove(['ip', familyWord(rule), 'rule', 'delete', ...words(rule)]);
  }
}

const familyWord = ({ family }: LookupRule): string => `-${family}`;

const words = ({ priority, from, to, iif, table }: LookupRule): readonly string[] => [
  'priority',
  String(priority),
  ...(from === undefined ? [] : ['from', from]),
  ...(to === undefined ? [] : ['to', to]),
  ...(iif === undefined ? [] : ['iif', iif]),
  'table',
  String(table),
  'protocol',
  PROTOCOL,
];

const isSame = ({ family, priority, from, to, iif, table }: LookupRule, shown: RuleRow): boolean =>
  shown.priority === priority &&
  shown.table === String(table) &&
  shown.iif === iif &&
  isNetwork(from, shown.src, shown.srclen, family) &&
  isNetwork(to, shown.dst, shown.dstlen, family);

/** `all` is no network, and so is the one that holds everything. */
function isNetwork(
  cidr: string | undefined,
  address: string | undefined,
  length: number | undefined,
  family: 4 | 6,
): boolean {
  const wanted = cidr === undefined ? undefined : parseCidr(cidr);
  if (wanted === undefined || wanted.prefix === 0) return address === undefined || address === 'all';
  return (
    address !== undefined &&
    parseAddress(address)?.address === wanted.address &&
    (length ?? (family === 4 ? 32 : 128)) === wanted.prefix
  );
}
