import { bitsOf, parseAddress, parseCidr, type Route } from '#libs/manifests/lean';
import { ElementBackend, type ElementState } from './element-backend.js';
import { PROTOCOL } from './tools.js';

interface RouteRow {
  readonly dst?: string;
  readonly type?: string;
  readonly protocol?: string;
  readonly gateway?: string;
  readonly dev?: string;
  readonly metric?: number;
}

/** iproute2's names for the types of routes, if it prints numbers. */
const TYPE_NUMBERS: Readonly<Record<string, Route['type']>> = { '1': 'unicast', '6': 'blackhole', '7': 'unreachable' };
/** The metrics of a route that sets none. */
const NO_METRIC = [undefined, 0, 1_024];

/** A route in a table, by its network and metric. */
export class RouteBackend extends ElementBackend<Route> {
  readonly kind = 'NetworkRoute';

  protected async stateOf(route: Route, fresh: boolean): Promise<ElementState | undefined> {
    const { table, to, metric } = route;
    const words = [familyWord(to), 'route', 'show', 'table', String(table)];
    const rows = await this.tools.rows<RouteRow>(words, fresh ? ['exact', to] : undefined);
    const same = rows.filter(
      (one) => isTo(to, one.dst) && (metric === undefined ? NO_METRIC.includes(one.metric) : one.metric === metric),
    );
    const row = same.find(({ protocol }) => protocol === PROTOCOL) ?? same[0];
    return row === undefined
      ? undefined
      : {
          ours: row.protocol === PROTOCOL,
          isOther: (row.gateway === undefined) !== (route.via === undefined),
          differs: difference(route, row),
        };
  }

  protected async make(route: Route): Promise<void> {
    const { type, via, dev } = route;
    const way = [...(via === undefined ? [] : ['via', via]), ...(dev === undefined ? [] : ['dev', dev])];
    await this.tools.run([
      'ip',
      familyWord(route.to),
      'route',
      'replace',
      ...(type === 'unicast' ? [] : [type]),
      ...identity(route),
      ...way,
    ]);
  }

  protected async remove(route: Route): Promise<void> {
    await this.tools.remove(['ip', familyWord(route.to), 'route', 'delete', ...identity(route)]);
  }
}

/** iproute2 shows the default network as `default`, and a single address without its prefix length. */
function isTo(network: string, row: string | undefined): boolean {
  const desired = parseCidr(network);
  if (desired === undefined || row === undefined) return false;
  if (desired.prefix === 0) return row === 'default';
  const parsed = parseCidr(row.includes('/') ? row : `${row}/${bitsOf(desired.family)}`);
  return parsed?.network === desired.network && parsed.family === desired.family;
}

const familyWord = (cidr: string): string => (parseCidr(cidr)?.family === 6 ? '-6' : '-4');

const identity = ({ to, table, metric }: Route): readonly string[] => [
  to,
  'table',
  String(table),
  'protocol',
  PROTOCOL,
  ...(metric === undefined ? [] : ['metric', String(metric)]),
];

function difference(route: Route, row: RouteRow): string | undefined {
  const type = TYPE_NUMBERS[row.type ?? '1'] ?? row.type;
  if (type !== route.type) return `is of type ${String(type)} instead of ${route.type}`;
  const gateway = row.gateway === undefined ? undefined : parseAddress(row.gateway)?.address;
  const via = route.via === undefined ? undefined : parseAddress(route.via)?.address;
  if (gateway !== via) return `goes via ${gateway ?? 'no gateway'} instead of ${via ?? 'no gateway'}`;
  if (route.dev !== undefined && row.dev !== route.dev)
    return `uses ${row.dev ?? 'no interface'} instead of ${route.dev}`;
  return undefined;
}
