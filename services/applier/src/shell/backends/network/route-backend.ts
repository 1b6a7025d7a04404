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

/** What iproute2 calls the types of routes when it is asked for numbers. */
const TYPE_NUMBERS: Readonly<Record<string, Route['type']>> = { '1': 'unicast', '6': 'blackhole', '7': 'unreachable' };
/** The metrics of a route that says none. */
const NO_METRIC = [undefined, 0, 1_024];

/** A route in a table, by its network and metric. */
export class RouteBackend extends ElementBackend<Route> {
  readonly kind = 'NetworkRoute';

  protected async stateOf(route: Route, fresh: boolean): Promise<ElementState | undefined> {
    const { table, to, metric } = route;
    const words = [familyWord(to), 'route', 'show', 'table', String(table)];
    const shown = await this.tools.rows<RouteRow>(words, fresh ? ['exact', to] : undefined);
    const same = shown.filter(
      (one) => isTo(to, one.dst) && (metric === undefined ? NO_METRIC.includes(one.metric) : one.metric === metric),
    );
    const found = same.find(({ protocol }) => protocol === PROTOCOL) ?? same[0];
    return found === undefined
      ? undefined
      : {
          ours: found.protocol === PROTOCOL,
          isOther: (found.gateway === undefined) !== (route.via === undefined),
          differs: difference(route, found),
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

/** iproute2 shows everything as `default`, and a single address without its length. */
function isTo(network: string, shown: string | undefined): boolean {
  const wanted = parseCidr(network);
  if (wanted === undefined || shown === undefined) return false;
  if (wanted.prefix === 0) return shown === 'default';
  const found = parseCidr(shown.includes('/') ? shown : `${shown}/${bitsOf(wanted.family)}`);
  return found?.network === wanted.network && found.family === wanted.family;
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

function difference(route: Route, shown: RouteRow): string | undefined {
  const type = TYPE_NUMBERS[shown.type ?? '1'] ?? shown.type;
  if (type !== route.type) return `is of type ${String(type)} instead of ${route.type}`;
  const gateway = shown.gateway === undefined ? undefined : parseAddress(shown.gateway)?.address;
  const via = route.via === undefined ? undefined : parseAddress(route.via)?.address;
  if (gateway !== via) return `goes via ${gateway ?? 'no gateway'} instead of ${via ?? 'no gateway'}`;
  if (route.dev !== undefined && shown.dev !== route.dev)
    return `uses ${shown.dev ?? 'no interface'} instead of ${route.dev}`;
  return undefined;
}
