import { checkManifest, isObject } from '#libs/manifests';
import { importLayer2, importPeering, importRoutingTable, importVrf } from './das-schiff.js';
import { ImportReport, listAt, type Fields, type Imported } from './import-report.js';
import { importMachineConfigs } from './machine-config.js';
import { importNodeDisruptionPolicy } from './node-disruption-policy.js';

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
/** Of each of these all are looked at together. */
const TOGETHER = [MACHINE_CONFIG, PEERING];

/** Makes manifests of the resources of MCO and of the network operator; what Sluice would refuse is named and left out. */
export function importDocuments(documents: readonly unknown[]): Imported {
  const report = new ImportReport();
  const all = documents.flatMap((document) => (isObject(document) && String(document['kind']).endsWith('List') ? listAt(document, 'items') : [document])).filter(isObject);
  importMachineConfigs(all.filter(({ kind }) => kind === MACHINE_CONFIG), report);
  for (const document of all) {
    const kind = String(document['kind']);
    const read = Object.hasOwn(BY_KIND, kind) ? BY_KIND[kind] : undefined;
    if (read !== undefined) read(document, report);
    else if (!TOGETHER.includes(kind)) report.say(kind, `there is no import of this kind; known are ${[...TOGETHER, ...Object.keys(BY_KIND)].join(', ')}`);
  }
  const networks = all.filter(({ kind }) => kind === LAYER2);
  for (const document of all.filter(({ kind }) => kind === PEERING)) importPeering(document, report, networks);
  const words: string[] = [];
  const manifests = report.manifests.filter((manifest) => {
    const checked = checkManifest(manifest, 'import');
    if (!checked.ok) words.push(...checked.reasons.map(({ fragment, field, message }) => `${fragment} ${field} ${message}: the fragment is left out`));
    return checked.ok;
  });
  return { manifests, words: [...report.words, ...words] };
}
