import type { BoundField, BoundValue } from '#libs/contracts';
import { until } from '#libs/testing';
import { BindingReader, type BoundObject, type ObjectSource, type ValueBucket } from './binding-reader.js';

const FIELD: BoundField = {
  from: 'cluster',
  apiVersion: 'v1',
  kind: 'ConfigMap',
  namespace: 'prod',
  name: 'about',
  fieldPath: 'data.region',
};
const OTHER = { ...FIELD, fieldPath: 'data.zone' };

/** Objects of which each answer may be held back. */
class Objects implements ObjectSource {
  data: Readonly<Record<string, unknown>> | string = { region: 'v0' };
  readonly listeners = new Set<() => void>();
  gate: () => Promise<void> = () => Promise.resolve();
  asked = 0;

  constructor(private readonly shared?: Objects) {}

  async read(): Promise<object | string> {
    this.asked += 1;
    const { data } = this.shared ?? this;
    const answer = typeof data === 'string' ? data : { data };
    await this.gate();
    return answer;
  }
  follow(_: BoundObject, onChange: () => void): () => void {
    this.listeners.add(onChange);
    return () => this.listeners.delete(onChange);
  }
  stop(): void {}
  changes(data: Objects['data']): void {
    this.data = data;
    for (const tell of this.listeners) tell();
  }
}

class Bucket implements ValueBucket {
  values: readonly BoundValue[] = [];
  revision = 0;
  readonly history: string[] = [];
  gate: () => Promise<void> = () => Promise.resolve();

  async read() {
    const { values, revision } = this;
    return { values, revision };
  }
  async write(_: string, values: readonly BoundValue[], revision: number): Promise<boolean> {
    await this.gate();
    if (revision !== this.revision) return false;
    this.revision += 1;
    this.values = values;
    this.history.push(values.map(({ value, missing }) => value ?? `(${String(missing)})`).join());
    return true;
  }
}

const log = { warn: () => undefined };
const running: BindingReader[] = [];
function reader(objects: Objects, bucket: Bucket): BindingReader {
  const one = new BindingReader({ node: 'c-1', objects, bucket, log, pauseMs: 5 });
  running.push(one);
  return one;
}
afterEach(() => {
  for (const one of running.splice(0)) one.stop();
});

describe('the values of bindings', () => {
  it('are reported once, and again when an object has changed', async () => {
    const [objects, bucket] = [new Objects(), new Bucket()];
    reader(objects, bucket).want([FIELD]);
    await until(() => bucket.history.length === 1, 'it is reported');
    const { asked } = objects;
    for (const tell of objects.listeners) tell();
    await until(() => objects.asked > asked, 'it is read again');
    objects.changes({ region: 'v1' });
    await until(() => bucket.history.length === 2, 'the change is reported');
    expect(bucket.history).toEqual(['v0', 'v1']);
  });

  it('are text, or the reason why they are none', async () => {
    const [objects, bucket] = [new Objects(), new Bucket()];
    reader(objects, bucket).want([FIELD, OTHER]);
    const reports = async (data: Objects['data']): Promise<unknown> => {
      const { revision } = bucket;
      objects.changes(data);
      await until(() => bucket.revision > revision, 'it is reported');
      return bucket.values.map(({ value, missing }) => value ?? missing);
    };
    expect(await reports({ region: 5, zone: true })).toEqual(['5', 'true']);
    expect(await reports({ region: '', zone: null })).toEqual([
      '',
      'the field is null, and must be a string, a number, true or false',
    ]);
    expect(await reports({ region: ['a'] })).toEqual([
      'the field is a list, and must be a string, a number, true or false',
      'the object does not have this field',
    ]);
    expect(await reports('it does not exist')).toEqual(['it does not exist', 'it does not exist']);
  });

  it('are asked of the object once for all its fields', async () => {
    const [objects, bucket] = [new Objects(), new Bucket()];
    objects.data = { region: 'r', zone: 'z' };
    reader(objects, bucket).want([FIELD, OTHER]);
    await until(() => bucket.history.length === 1, 'they are reported');
    expect([bucket.history, objects.asked, objects.listeners.size]).toEqual([['r,z'], 1, 1]);
  });

  it('are no longer followed once nobody wants them', async () => {
    const [objects, bucket] = [new Objects(), new Bucket()];
    const one = reader(objects, bucket);
    one.want([FIELD]);
    await until(() => bucket.history.length === 1, 'it is reported');
    one.want([]);
    await until(() => bucket.history.length === 2, 'that it is gone is reported');
    expect([bucket.values, objects.listeners.size]).toEqual([[], 0]);
  });

  it('do not become older when two copies report them, wherever one of them was held up', async () => {
    for (const at of ['read', 'write'] as const) {
      const [objects, bucket] = [new Objects(), new Bucket()];
      const slow = new Objects(objects);
      let release: () => void = () => undefined;
      const held = new Promise<void>((resolve) => (release = resolve));
      if (at === 'read') slow.gate = () => held;
      const late = new Bucket();
      // The same bucket, which one copy writes late.
      const view: ValueBucket = {
        read: () => bucket.read(),
        write: async (node, values, revision) => {
          if (at === 'write') await held;
          const isWritten = await bucket.write(node, values, revision);
          late.history.push(String(isWritten));
          return isWritten;
        },
      };
      const first = new BindingReader({ node: 'c-1', objects: slow, bucket: view, log, pauseMs: 5 });
      running.push(first);
      first.want([FIELD]);
      await until(() => slow.asked > 0, 'the slow copy has read the old value, or is about to');
      objects.data = { region: 'v1' };
      reader(objects, bucket).want([FIELD]);
      await until(() => bucket.history.includes('v1'), 'the other copy has reported the new value');
      release();
      await until(() => late.history.length > 0 || slow.asked > 1, 'the slow copy goes on');
      await until(() => slow.asked > 1, 'it reads again');
      expect(late.history[0]).toBe('false');
      expect(bucket.history).toEqual(['v1']);
    }
  });

  it('that change all the time are reported less and less often', async () => {
    const [objects, bucket] = [new Objects(), new Bucket()];
    reader(objects, bucket).want([FIELD]);
    await until(() => bucket.history.length === 1, 'it is reported');
    let n = 0;
    const change = setInterval(() => objects.changes({ region: `n${(n += 1)}` }), 1);
    await until(() => n > 300, 'it has changed often');
    clearInterval(change);
    // With a pause that stays as short as it was, there would be a report for about every fifth change.
    expect(bucket.history.length).toBeLessThan(20);
    await until(() => bucket.values[0]?.value === `n${n}`, 'the last one is reported');
  });

  it('are read again after a failure', async () => {
    const [objects, bucket] = [new Objects(), new Bucket()];
    const one = reader(objects, bucket);
    objects.gate = () => Promise.reject(new Error('no answer'));
    one.want([FIELD]);
    await until(() => objects.asked > 0, 'it was tried');
    objects.gate = () => Promise.resolve();
    one.soon();
    await until(() => bucket.history.length === 1, 'it is reported');
  });
});
