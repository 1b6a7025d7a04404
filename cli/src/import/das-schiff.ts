import { parseCidr } from '#libs/addresses';
import { fieldsAt, literal, pick, type Fields, type ImportReport } from './import-report.js';
import { Place } from './place.js';

const FILTER = ['cidr', 'action', 'seq', 'ge', 'le'];
const VRF = ['vrf', 'seq', 'aggregate', 'sbrPrefixes', 'community', 'communities', 'mtu'];
const PEERING = ['remoteASN', 'enableBFD', 'maximumPrefixes', 'holdTime', 'keepaliveTime'];
const LAYER2 = [
  'id',
  'mtu',
  'vni',
  'vrf',
  'anycastMac',
  'anycastGateways',
  'advertiseNeighbors',
  'neighSuppression',
  'disableSegmentation',
];

/** The network operator's `VRFRouteConfiguration`. */
export function importVrf(document: Fields, report: ImportReport): void {
  const { name, where, spec, nodeSelector } = read(document);
  const { vni, routeTarget } = spec;
  const isWhole = isSet(vni) && isSet(routeTarget);
  if (isSet(vni) !== isSet(routeTarget))
    report.say(where, `${isSet(vni) ? 'vni' : 'routeTarget'} is used together with the other only, and is left out`);
  const loopbacks = mapsAt(spec, 'loopbacks', where, report).filter((loopback) => {
    report.leftOver(`${where} loopback ${String(loopback['name'])}`, loopback, ['name', 'subnet']);
    const cidr = parseCidr(String(loopback['subnet']));
    const isOne = cidr !== undefined && cidr.prefix === (cidr.family === 4 ? 32 : 128);
    if (!isOne)
      report.say(
        where,
        `loopback ${String(loopback['name'])} has no equivalent, and is left out: no node is given an address of ${String(loopback['subnet'])} here; a template such as "{{ node.labels.loopback }}/32" gives each its own`,
      );
    return isOne;
  });
  report.leftOver(where, spec, [...VRF, 'vni', 'routeTarget', 'import', 'export', 'loopbacks', 'nodeSelector']);
  report.add('Vrf', name, {
    nodeSelector,
    ...literal({
      ...pick(spec, VRF),
      ...(isWhole ? { vni, routeTarget } : {}),
      ...filters(spec, where, report),
      ...(loopbacks.length > 0 ? { loopbacks: loopbacks.map((loopback) => pick(loopback, ['name', 'subnet'])) } : {}),
    }),
  });
}

/** The network operator's `Layer2NetworkConfiguration`. */
export function importLayer2(document: Fields, report: ImportReport): void {
  const { name, where, spec, nodeSelector } = read(document);
  report.leftOver(where, spec, [...LAYER2, 'createMACVLANInterface', 'nodeSelector']);
  const macvlan = new Place(report, where, spec).flag('createMACVLANInterface');
  report.add('Layer2Network', name, {
    nodeSelector,
    ...literal({ ...pick(spec, LAYER2), ...(macvlan === undefined ? {} : { createMacvlanInterface: macvlan }) }),
  });
}

/**
 * The network operator's `BGPPeering`, once its networks are known: it has no selector of its own there, and is where the network is.
 * The password is a secret, which no fragment carries.
 */
export function importPeering(document: Fields, report: ImportReport, networks: readonly Fields[]): void {
  const { name, where, spec } = read(document);
  const peeringVlan = new Place(report, where, spec).map('peeringVlan');
  const wanted = String(peeringVlan.raw('name') ?? '');
  peeringVlan.rest();
  const network = networks.find((one) => fieldsAt(one, 'metadata')['name'] === wanted);
  if (network === undefined)
    report.say(
      where,
      `Layer2NetworkConfiguration ${wanted} is not here: all nodes are selected, and it must be on each of them`,
    );
  report.leftOver(where, spec, [...PEERING, 'peeringVlan', 'import', 'export', 'nodeSelector']);
  const { remoteASN, enableBFD, ...more } = pick(spec, PEERING);
  report.add('BgpPeering', name, {
    nodeSelector: network === undefined ? {} : read(network).nodeSelector,
    network: report.nameOf('Layer2Network', wanted),
    ...(remoteASN === undefined ? {} : { remoteAs: remoteASN }),
    ...literal({ ...more, ...(enableBFD === undefined ? {} : { bfd: enableBFD }), ...filters(spec, where, report) }),
  });
}

/** The network operator's `RoutingTable`. */
export function importRoutingTable(document: Fields, report: ImportReport): void {
  const { name, where, spec, nodeSelector } = read(document);
  report.leftOver(where, spec, ['tableId', 'nodeSelector']);
  report.add('RoutingTable', name, { nodeSelector, ...pick(spec, ['tableId']) });
}

/** What is let through, in and out. */
function filters(spec: Fields, where: string, report: ImportReport): Fields {
  return Object.fromEntries(
    ['import', 'export'].flatMap((field) => {
      const list = mapsAt(spec, field, where, report);
      list.forEach((filter, i) => report.leftOver(`${where} ${field}[${i}]`, filter, FILTER));
      return list.length === 0 ? [] : [[field, list.map((filter) => pick(filter, FILTER))]];
    }),
  );
}

const mapsAt = (spec: Fields, field: string, where: string, report: ImportReport): readonly Fields[] =>
  new Place(report, where, spec).maps(field).map(({ fields }) => fields);

/** Absent means all nodes there. What is no selector stays what it is, to be refused: all nodes are not meant. */
function read(document: Fields): {
  readonly name: string;
  readonly where: string;
  readonly spec: Fields;
  readonly nodeSelector: unknown;
} {
  const name = String(fieldsAt(document, 'metadata')['name'] ?? 'unnamed');
  const spec = fieldsAt(document, 'spec');
  return { name, where: `${String(document['kind'])}/${name}`, spec, nodeSelector: spec['nodeSelector'] ?? {} };
}

const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== '';
