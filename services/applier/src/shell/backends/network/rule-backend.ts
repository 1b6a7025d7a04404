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

/** A rule that looks up a table. It has no properties besides those that identify it. */
export class RuleBackend extends ElementBackend<LookupRule> {
  readonly kind = 'NetworkRule';

  protected async stateOf(rule: LookupRule, fresh: boolean): Promise<ElementState | undefined> {
    const rows = await this.tools.rows<RuleRow>([familyWord(rule), 'rule', 'show'], fresh ? [] : undefined);
    const same = rows.filter((one) => isSame(rule, one));
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

const isSame = ({ family, priority, from, to, iif, table }: LookupRule, row: RuleRow): boolean =>
  row.priority === priority &&
  row.table === String(table) &&
  row.iif === iif &&
  isNetwork(from, row.src, row.srclen, family) &&
  isNetwork(to, row.dst, row.dstlen, family);

/** `all` means no network, and so does the network that contains everything. */
function isNetwork(
  cidr: string | undefined,
  address: string | undefined,
  length: number | undefined,
  family: 4 | 6,
): boolean {
  const desired = cidr === undefined ? undefined : parseCidr(cidr);
  if (desired === undefined || desired.prefix === 0) return address === undefined || address === 'all';
  return (
    address !== undefined &&
    parseAddress(address)?.address === desired.address &&
    (length ?? (family === 4 ? 32 : 128)) === desired.prefix
  );
}
