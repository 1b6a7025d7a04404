import type { DefinitionSeen } from '#libs/kube';
import { whatToDo } from './kubernetes.js';

const seen = (name: string, state: DefinitionSeen['state'], version = '', release = ''): DefinitionSeen => ({
  name,
  state,
  version,
  release,
});

describe('what sluice up --kube does with definitions', () => {
  const done = (all: readonly DefinitionSeen[], keep = false) => {
    const { words, write } = whatToDo(all, '0.2.0', keep);
    return [[...write], words];
  };

  test('that are there, as they shall be: nothing, whatever version wrote them', () => {
    expect(done([seen('files', 'same', '0.1.0'), seen('pools', 'same')])).toEqual([
      [],
      ['the definitions of its 2 custom resources are there'],
    ]);
  });

  test('that are missing or older: it writes them, and says so', () => {
    expect(done([seen('files', 'missing'), seen('pools', 'different', '0.1.9'), seen('vrfs', 'different')])).toEqual([
      ['files', 'pools', 'vrfs'],
      [
        '1 definitions of custom resources are missing, and written by server-side apply, as sluice; they stay when this ends: files',
        '2 definitions are of 0.1.9, an unnamed version and differ from those of 0.2.0: written by server-side apply, as sluice; they stay when this ends',
      ],
    ]);
  });

  test('that are newer: it leaves them, and says what that means', () => {
    expect(done([seen('files', 'different', '0.10.0'), seen('pools', 'different', '0.2.0')])).toEqual([
      ['pools'],
      [
        '1 definitions are of 0.2.0 and differ from those of 0.2.0: written by server-side apply, as sluice; they stay when this ends',
        '1 definitions are newer than this Sluice: of 0.10.0, and this is 0.2.0. They are left as they are; what they know more is refused here: upgrade Sluice',
      ],
    ]);
  });

  test('that Helm put there: it leaves them, and warns of the services beside them', () => {
    expect(
      done([seen('files', 'different', '0.1.0', 'sluice/sluice'), seen('pools', 'same', '0.1.0', 'sluice/sluice')]),
    ).toEqual([
      [],
      [
        '1 definitions of 0.1.0 differ from those of 0.2.0, and belong to the Helm release sluice/sluice: they are left as they are; upgrade that',
        'Sluice is installed there by Helm (sluice/sluice): where its services run, both would work on the same objects and Nodes; end one of them',
      ],
    ]);
  });

  test('with --keep-crds: nothing, and it says what is not there', () => {
    expect(done([seen('files', 'missing'), seen('pools', 'different', '0.1.0')], true)).toEqual([
      [],
      [
        '1 definitions are missing, and objects of these kinds are waited for: files',
        '1 definitions are of 0.1.0 and differ from those of 0.2.0: left as they are (--keep-crds)',
      ],
    ]);
  });
});
