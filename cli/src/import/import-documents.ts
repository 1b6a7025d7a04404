import { isDeepStrictEqual } from 'node:util';
import { checkManifest, isObject } from '#libs/manifests';
import { importLayer2, importPeering, importRoutingTable, importVrf } from './das-schiff.js';
import { fieldsAt, ImportReport, type Fields, type ImportResult } from './import-report.js';
import { importMachineConfigs } from './machine-config.js';
import { importNodeDisruptionPolicy } from './node-disruption-policy.js';
import { Place } from './place.js';
import { importSdewan, isFunctionDeployment, isSdewanKind, SDEWAN } from './sdewan.js';

const BY_KIND: Readonly<Record<string, (document: Fields, report: ImportReport) => void>> = {
  VRFRouteConfiguration: importVrf,
  Layer2NetworkConfiguration: importLayer2,
  RoutingTable: importRoutingTable,
  MachineConfiguration: importNodeDisruptionPolicy,
  NodeDisruptionPolicy: importNodeDisruptionPolicy,
};
const MACHINE_CONFIG = 'MachineConfig';
const PEERING = 'BGPPeering';
const LAYER2 = 'Layer2NetworkConfiguration';
/** All documents of such a kind are imported together. */
const TOGETHER = [MACHINE_CONFIG, PEERING];
const SCHIFF = 'network.schiff.telekom.de/v1alpha1';
/** A NodeDisruptionPolicy on its own has no API version. */
const API_VERSIONS: Readonly<Record<string, string>> = {
  [MACHINE_CONFIG]: 'machineconfiguration.openshift.io/v1',
  MachineConfiguration: 'operator.openshift.io/v1',
  VRFRouteConfiguration: SCHIFF,
  [LAYER2]: SCHIFF,
  RoutingTable: SCHIFF,
  [PEERING]: SCHIFF,
};

/**
 * Converts resources of MCO, of the network operator and of the SD-EWAN controller to manifests. Reports and skips what
 * Sluice would reject.
 */
export function importDocuments(documents: readonly unknown[]): ImportResult {
  const report = new ImportReport();
  const all = latest(
    documents
      .filter(isObject)
      .flatMap((document) => itemsOf(document, report))
      .filter((document) => isWanted(document, report) && isReadable(document, report)),
    report,
  );
  importMachineConfigs(
    all.filter(({ kind }) => kind === MACHINE_CONFIG),
    report,
  );
  for (const document of all) {
    const kind = String(document['kind']);
    const read = Object.hasOwn(BY_KIND, kind) ? BY_KIND[kind] : undefined;
    if (read !== undefined) read(document, report);
    else if (!TOGETHER.includes(kind) && !isSdewanKind(kind) && !isFunctionDeployment(document))
      report.skip(
        kind,
        `unsupported kind; supported kinds are ${[...TOGETHER, ...Object.keys(BY_KIND)].join(', ')}, and those of ${SDEWAN}`,
      );
  }
  importSdewan(
    all.filter(({ kind }) => isSdewanKind(String(kind))),
    all.filter(isFunctionDeployment),
    report,
  );
  const networks = all.filter(({ kind }) => kind === LAYER2);
  for (const document of all.filter(({ kind }) => kind === PEERING)) importPeering(document, report, networks);
  const words: string[] = [];
  const manifests = report.manifests.filter((manifest) => {
    const checked = checkManifest(manifest, 'import');
    if (!checked.ok)
      words.push(...checked.reasons.map(({ fragment, field, message }) => `skipped ${fragment}: ${field} ${message}`));
    return checked.ok;
  });
  return { manifests, words: [...report.words, ...words] };
}

function itemsOf(document: Fields, report: ImportReport): readonly Fields[] {
  const kind = String(document['kind']);
  return kind.endsWith('List')
    ? new Place(report, kind, document).maps('items').map(({ fields }) => fields)
    : [document];
}

const nameOf = (document: Fields): string =>
  `${String(document['kind'])}/${String(fieldsAt(document, 'metadata')['name'] ?? 'unnamed')}`;

/** A resource that is being deleted exists until its controller is done. An import would bring it back. */
function isWanted(document: Fields, report: ImportReport): boolean {
  const isLeaving = fieldsAt(document, 'metadata')['deletionTimestamp'] !== undefined;
  if (isLeaving) report.skip(nameOf(document), 'it is being deleted');
  return !isLeaving;
}

/** A document of another API version is skipped as a whole, because its fields may mean something else. */
function isReadable(document: Fields, report: ImportReport): boolean {
  const [kind, apiVersion] = [String(document['kind']), document['apiVersion']];
  const version = Object.hasOwn(API_VERSIONS, kind) ? API_VERSIONS[kind] : isSdewanKind(kind) ? SDEWAN : undefined;
  const isOther = version !== undefined && apiVersion !== undefined && apiVersion !== version;
  if (isOther) report.skip(nameOf(document), `unsupported apiVersion ${JSON.stringify(apiVersion)}; use ${version}`);
  else if (version !== undefined || Object.hasOwn(BY_KIND, kind)) {
    const place = new Place(report, nameOf(document), document);
    // Only the name and the role of its metadata are imported, and its status is not config.
    for (const field of ['apiVersion', 'kind', 'metadata', 'status']) place.raw(field);
    place.map('spec');
    place.rest();
  }
  return !isOther;
}

/** If two documents have the same name, the later one wins, as when both are applied. */
function latest(documents: readonly Fields[], report: ImportReport): readonly Fields[] {
  const byName = new Map<string, Fields>();
  for (const document of documents) {
    const { name, namespace } = fieldsAt(document, 'metadata');
    const key = name === undefined ? `${byName.size}` : JSON.stringify([document['kind'], namespace, name]);
    const before = byName.get(key);
    if (before !== undefined && !isDeepStrictEqual(before, document))
      report.say(nameOf(document), 'defined more than once: the last one wins');
    byName.set(key, document);
  }
  return [...byName.values()];
}
