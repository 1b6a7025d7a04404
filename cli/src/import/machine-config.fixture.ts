import { importDocuments } from './import-documents.js';

export const machineConfig = (name: string, spec: object, role = 'worker'): object => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name, labels: { 'machineconfiguration.openshift.io/role': role } },
  spec,
});

/** A MachineConfig with this Ignition config. */
export const ignition = (name: string, config: object): object =>
  machineConfig(name, { config: { ignition: { version: '3.2.0' }, ...config } });

export const files = (...list: object[]): object => ({
  config: { ignition: { version: '3.2.0' }, storage: { files: list } },
});

export const file = (path: string, source: string, more: object = {}, contents: object = {}): object => ({
  path,
  contents: { source, ...contents },
  ...more,
});

/** The specs of the manifests of a kind. */
export const specs = (kind: string, ...documents: object[]): unknown[] =>
  importDocuments(documents)
    .manifests.filter((manifest) => manifest.kind === kind)
    .map(({ spec }) => spec);

export const messagesOf = (...documents: object[]): readonly string[] => importDocuments(documents).words;
