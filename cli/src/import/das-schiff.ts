import { parseCidr } from '#libs/manifests/lean';
import { fieldsAt, literal, type Fields, type ImportReport } from './import-report.js';
import { Place } from './place.js';

const FILTER = ['cidr', 'action', 'seq', 'ge', 'le'];
const VRF = ['vrf', 'seq', 'aggregate', 'sbrPrefixes', 'community', 'communities', 'mtu'];
const PEERING = ['maximumPrefixes', 'holdTime', 'keepaliveTime'];
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
  const { name, spec, nodeSelector } = read(document, report);
  const fabric = spec.take(['vni', 'routeTarget']);
  const [field = '', ...more] = Object.keys(fabric);
  const isHalf = field !== '' && more.length === 0;
  if (isHalf) spec.say(`skipped ${field}: it needs ${field === 'vni' ? 'routeTarget' : 'vni'} as well`);
  const loopbacks = spec.called('loopbacks', 'name', 'loopback ').flatMap((one) => {
    const { subnet } = one.place.take(['subnet']);
    one.place.rest();
    const cidr = parseCidr(String(subnet));
    if (cidr?.prefix === (cidr?.family === 4 ? 32 : 128)) return [{ name: one.name, subnet }];
    spec.say(
      `skipped loopback ${one.name}: Sluice does not assign addresses from ${String(subnet)}; give each node its own with a template such as "{{ node.labels.loopback }}/32"`,
    );
    return [];
  });
  const manifest = {
    ...spec.take(VRF),
    ...(isHalf ? {} : fabric),
    ...filters(spec),
    ...(loopbacks.length > 0 ? { loopbacks } : {}),
  };
  spec.rest();
  report.add('Vrf', name, { nodeSelector, ...literal(manifest) });
}

/** The network operator's `Layer2NetworkConfiguration`. */
export function importLayer2(document: Fields, report: ImportReport): void {
  const { name, spec, nodeSelector } = read(document, report);
  const macvlan = spec.flag('createMACVLANInterface');
  const manifest = { ...spec.take(LAYER2), ...(macvlan === undefined ? {} : { createMacvlanInterface: macvlan }) };
  spec.rest();
  report.add('Layer2Network', name, { nodeSelector, ...literal(manifest) });
}

/**
 * The network operator's `BGPPeering`, once its networks are known. It has no selector there, but belongs to the nodes
 * of its network. Its password is a secret, which fragments must not contain.
 */
export function importPeering(document: Fields, report: ImportReport, networks: readonly Fields[]): void {
  const { name, spec } = read(document, report);
  const peeringVlan = spec.map('peeringVlan');
  const vlanName = String(peeringVlan.raw('name') ?? '');
  peeringVlan.rest();
  const network = networks.find((one) => fieldsAt(one, 'metadata')['name'] === vlanName);
  if (network === undefined)
    spec.say(
      `Layer2NetworkConfiguration ${vlanName} is not in the input: the peering selects all nodes, so the network must be on all of them`,
    );
  const { remoteASN, enableBFD } = spec.take(['remoteASN', 'enableBFD']);
  const manifest = { ...spec.take(PEERING), ...(enableBFD === undefined ? {} : { bfd: enableBFD }), ...filters(spec) };
  spec.rest();
  report.add('BgpPeering', name, {
    nodeSelector: network === undefined ? {} : selectorOf(network),
    network: report.nameOf('Layer2Network', vlanName),
    ...(remoteASN === undefined ? {} : { remoteAs: remoteASN }),
    ...literal(manifest),
  });
}

/** The network operator's `RoutingTable`. */
export function importRoutingTable(document: Fields, report: ImportReport): void {
  const { name, spec, nodeSelector } = read(document, report);
  report.add('RoutingTable', name, { nodeSelector, ...spec.take(['tableId']) });
  spec.rest();
}

/** The routes that are imported and exported. */
function filters(spec: Place): Fields {
  return Object.fromEntries(
    ['import', 'export'].flatMap((field) => {
      const list = spec.maps(field).map((filter) => {
        const taken = filter.take(FILTER);
        filter.rest();
        return taken;
      });
      return list.length === 0 ? [] : [[field, list]];
    }),
  );
}

/** Absent means all nodes there. An invalid selector is kept, so that it is refused and does not select all nodes. */
const selectorOf = (document: Fields): unknown => fieldsAt(document, 'spec')['nodeSelector'] ?? {};

function read(
  document: Fields,
  report: ImportReport,
): { readonly name: string; readonly spec: Place; readonly nodeSelector: unknown } {
  const name = String(fieldsAt(document, 'metadata')['name'] ?? 'unnamed');
  const spec = new Place(report, `${String(document['kind'])}/${name}`, fieldsAt(document, 'spec'));
  spec.raw('nodeSelector');
  return { name, spec, nodeSelector: selectorOf(document) };
}
