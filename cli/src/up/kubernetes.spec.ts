import type { DefinitionState } from '#libs/kube';
import { whatToDo } from './kubernetes.js';

const seen = (name: string, state: DefinitionState['state'], version = '', release = ''): DefinitionState => ({
  name,
  state,
  version,
  release,
});

describe('sluice up --kube and the custom resource definitions', () => {
  const done = (all: readonly DefinitionState[], keep = false) => {
    const { words, write } = whatToDo(all, '0.2.0', keep);
    return [[...write], words];
  };

  test('leaves them alone if they are as desired, whatever version wrote them', () => {
    expect(done([seen('files', 'same', '0.1.0'), seen('pools', 'same')])).toEqual([[], ['All 2 CRDs are up to date']]);
  });

  test('writes them if they are missing or older, and says so', () => {
    expect(done([seen('files', 'missing'), seen('pools', 'different', '0.1.9'), seen('vrfs', 'different')])).toEqual([
      ['files', 'pools', 'vrfs'],
      [
        'Installing 1 CRD with server-side apply (kept when sluice up ends): files',
        'Updating 2 CRDs from version 0.1.9, unknown to 0.2.0 with server-side apply',
      ],
    ]);
  });

  test('leaves newer ones alone, and says what that means', () => {
    expect(done([seen('files', 'different', '0.10.0'), seen('pools', 'different', '0.2.0')])).toEqual([
      ['pools'],
      [
        'Updating 1 CRD from version 0.2.0 to 0.2.0 with server-side apply',
        'Keeping 1 CRD of the newer version 0.10.0; this is Sluice 0.2.0, which rejects unknown fields. Upgrade Sluice',
      ],
    ]);
  });

  test('leaves those of Helm alone, and warns about the services in the cluster', () => {
    expect(
      done([seen('files', 'different', '0.1.0', 'sluice/sluice'), seen('pools', 'same', '0.1.0', 'sluice/sluice')]),
    ).toEqual([
      [],
      [
        'Keeping 1 CRD of version 0.1.0 from the Helm release sluice/sluice; this is Sluice 0.2.0. Upgrade the Helm release',
        'Sluice is also installed in this cluster by Helm (sluice/sluice): do not run both, because they would work on the same objects and Nodes',
      ],
    ]);
  });

  test('with --keep-crds, writes nothing and names what is missing', () => {
    expect(done([seen('files', 'missing'), seen('pools', 'different', '0.1.0')], true)).toEqual([
      [],
      [
        'Waiting for 1 CRD, not installed because of --keep-crds: files',
        'Keeping 1 CRD of version 0.1.0 (--keep-crds); this is Sluice 0.2.0',
      ],
    ]);
  });
});
