import {
  compositeKindOf,
  functionKindOf,
  isObject,
  sectionsOf,
  type CompositeKind,
  type Field,
  type FieldTable,
  type FunctionKind,
} from '#libs/manifests';
import { fieldsAt, literal, type Fields, type ImportReport } from './import-report.js';
import { Place } from './place.js';

/** The SD-EWAN controller, and what its resources are called that become no fragment. */
export const SDEWAN = 'batch.sdewan.akraino.org/v1alpha1';
const STATUS = 'CNFStatus';
const APPLICATION = 'SdewanApplication';
const DEPLOYMENT = 'Deployment';
const PURPOSE = 'sdewanPurpose';
/** The networks of a function, by the names that people give them. */
const NETWORKS = 'k8s.plugin.opnfv.org/nfn-network';

/** Whether documents of this kind are imported here. */
export const isSdewanKind = (kind: string): boolean => kindOf(kind) !== undefined || kind === STATUS;
const kindOf = (kind: string): FunctionKind | CompositeKind | undefined =>
  functionKindOf(kind) ?? compositeKindOf(kind);

/** Whether this is the Deployment of a network function, which is read for the names of its networks. */
export const isFunctionDeployment = (document: Fields): boolean =>
  document['kind'] === DEPLOYMENT && purposeOf(document) !== undefined;

/** A resource that becomes a fragment. */
interface Resource {
  readonly document: Fields;
  readonly kind: FunctionKind | CompositeKind;
  readonly where: string;
  readonly purpose: string;
  /** Its name there. */
  readonly name: string;
  /** The name of its fragment. */
  readonly label: string;
}

/**
 * Imports the resources of the SD-EWAN controller. Their label `sdewanPurpose` selects the nodes, and names become
 * those that functions and fragments can have. `deployments` are those of the functions.
 */
export function importSdewan(documents: readonly Fields[], deployments: readonly Fields[], report: ImportReport): void {
  const resources = named(documents, report);
  const labels = new Map(resources.map((one) => [keyOf(one.kind.kind, one.purpose, one.name), one.label]));
  const networks = networksByPurpose(deployments);
  for (const resource of resources) {
    const { document, kind, where, purpose, label } = resource;
    const place = new Place(report, where, fieldsAt(document, 'spec'));
    // The controller writes them into the resource: its name, and what its kind stands for.
    for (const field of ['name', ...Object.keys(('fixed' in kind && kind.fixed) || {})]) place.raw(field);
    const translate: Translate = (field, value, at) =>
      translated(field, value, {
        labelOf: (to, name) => labels.get(keyOf(to, purpose, name)) ?? plainName(name),
        interfaceOf: (network) => interfaceOf(network, purpose, networks, (words) => place.say(`${at}: ${words}`)),
      });
    const spec = readFields(kind.fields, place, translate);
    place.rest();
    report.addNamed(kind.kind, label, labelsOf(document), {
      nodeSelector: { matchLabels: { [PURPOSE]: purpose } },
      ...literal(spec),
    });
  }
}

type Translate = (field: Field, value: unknown, at: string) => unknown;

const keyOf = (...parts: readonly string[]): string => JSON.stringify(parts);

/** The resources that can be imported. Of two that would be one object on a function, the first is kept. */
function named(documents: readonly Fields[], report: ImportReport): readonly Resource[] {
  const claimed = new Map<string, string>();
  const taken = new Map<string, string>();
  return documents.flatMap((document): Resource[] => {
    const { namespace = 'default', name: text } = fieldsAt(document, 'metadata');
    const name = String(text ?? 'unnamed');
    const kindName = String(document['kind']);
    const where = `${kindName}/${name}`;
    const skip = (why: string): Resource[] => {
      report.skip(where, why);
      return [];
    };
    const kind = kindOf(kindName);
    if (kind === undefined) return skip('the replicas of a function are asked for their status without it');
    const purpose = purposeOf(document);
    if (purpose === undefined) return skip(`it has no label ${PURPOSE}, so no function has it`);
    if (kindName === APPLICATION)
      return skip('it selects pods, and Sluice needs their addresses: write an SdewanApplication with an iplist');
    const claims = claimsOf(kind, name, fieldsAt(document, 'spec')).map((claim) => keyOf(purpose, claim));
    const other = claims.map((claim) => claimed.get(claim)).find((one) => one !== undefined);
    if (other !== undefined)
      return skip(
        `in the namespace ${String(namespace)}: on a function it would be one object with ${other}; rename one of them`,
      );
    const plain = plainName(name);
    const label = taken.has(keyOf(kindName, plain)) ? `${plain}${plainName(purpose)}` : plain;
    const owner = taken.get(keyOf(kindName, label));
    if (owner !== undefined) return skip(`its name would be ${label}, as that of ${owner}; rename one of them`);
    for (const claim of claims) claimed.set(claim, `${where} of the namespace ${String(namespace)}`);
    taken.set(keyOf(kindName, label), where);
    if (label !== name)
      report.say(where, `renamed to ${label}: names are letters and digits, and unique for each kind`);
    return [{ document, kind, where, purpose, name, label }];
  });
}

function claimsOf(kind: FunctionKind | CompositeKind, name: string, spec: Fields): readonly string[] {
  return 'space' in kind ? sectionsOf(kind, name, spec) : [`${kind.kind} ${name}`];
}

const plainName = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');

function purposeOf(document: Fields): string | undefined {
  const purpose = labelsOf(document)[PURPOSE];
  return typeof purpose === 'string' && purpose !== '' ? purpose : undefined;
}

const labelsOf = (document: Fields): Fields => fieldsAt(fieldsAt(document, 'metadata'), 'labels');

/** The fields of the table, without those that say nothing. */
function readFields(table: FieldTable, place: Place, translate: Translate): Fields {
  return Object.fromEntries(
    Object.entries(table).flatMap(([key, field]): (readonly [string, unknown])[] => {
      if ('fields' in field) {
        const items = place.maps(key).map((item) => {
          const read = readFields(field.fields, item, translate);
          item.rest();
          return read;
        });
        return items.length === 0 ? [] : [[key, items]];
      }
      const { [key]: value } = place.take([key]);
      if (value === undefined) return [];
      const all = Array.isArray(value)
        ? value.map((one: unknown) => translate(field, one, key))
        : translate(field, value, key);
      return [[key, all]];
    }),
  );
}

interface Translation {
  readonly labelOf: (kind: string, name: string) => string;
  readonly interfaceOf: (network: string) => string;
}

function translated(field: Field, value: unknown, { labelOf, interfaceOf: toInterface }: Translation): unknown {
  if (typeof value !== 'string') return value;
  if (field.refersTo !== undefined) return labelOf(field.refersTo, value);
  if (!('form' in field)) return value;
  if (field.form === 'interface') return toInterface(value);
  if (field.form === 'host') return value.toLowerCase().replace(/\.$/, '');
  // The function takes both, and writes one of them.
  if (field.form === 'gateway' && value === '%any') return 'any';
  return value;
}

type Networks = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** The controller translates the names of networks, as their Deployment says. */
function interfaceOf(network: string, purpose: string, networks: Networks, say: (words: string) => void): string {
  const known = networks.get(purpose)?.get(network);
  if (known !== undefined) return known;
  say(
    `the interface of the network ${network} is not known: import the Deployment of the function too, or write the name of the interface`,
  );
  return network;
}

function networksByPurpose(deployments: readonly Fields[]): Networks {
  return new Map(
    deployments.map((deployment) => {
      const template = fieldsAt(fieldsAt(deployment, 'spec'), 'template');
      const places = [fieldsAt(template, 'metadata'), fieldsAt(deployment, 'metadata')];
      const texts = places.map((place) => fieldsAt(place, 'annotations')[NETWORKS]);
      return [purposeOf(deployment) ?? '', new Map(texts.flatMap(networksIn))] as const;
    }),
  );
}

function networksIn(text: unknown): readonly (readonly [string, string])[] {
  try {
    const { interface: all } = JSON.parse(String(text)) as { readonly interface?: unknown };
    return (Array.isArray(all) ? (all as readonly unknown[]) : []).flatMap((one) =>
      isObject(one) && typeof one['name'] === 'string' && typeof one['interface'] === 'string'
        ? [[one['name'], one['interface']] as const]
        : [],
    );
  } catch {
    return [];
  }
}
