import {
  CERTIFICATES,
  COLLECTIONS,
  type Collection,
  type Member,
  type Section,
  type World,
} from './stand-in-schema.js';

type FunctionObject = Readonly<Record<string, unknown>>;
export interface Refused {
  readonly code: number;
  readonly message: string;
}

/** The config files of a function, as sections, and what it passed on to the kernel. */
export class FunctionConfig implements World {
  networks: readonly string[] = ['lan', 'wan1', 'wan2'];
  interfaces: readonly string[] = ['eth0', 'net1', 'net2'];
  addresses: Readonly<Record<string, string>> = { '192.0.2.5': 'eth0' };
  /** The rules of the kernel, as `nat/v1/nats a`. They outlive the container. */
  readonly kernel: string[] = [];
  private files = new Map<string, Section[]>();
  private made = 0;

  constructor() {
    this.empty();
  }

  /** As the image has them: the interfaces of mwan3, and nothing else. */
  empty(): void {
    const wan = ['wan1', 'wan2'].map((id) => ({ id, type: 'interface', options: {} }));
    this.files = new Map([['mwan3', wan]]);
  }

  sections(config: string): readonly Section[] {
    return this.files.get(config) ?? [];
  }

  list(path: string): readonly FunctionObject[] {
    const { config, type } = collectionOf(path);
    return this.sections(config)
      .filter((section) => section.type === type)
      .map((section) => this.shown(path, section));
  }

  get(path: string, name: string): FunctionObject | undefined {
    const found = this.find(path, name)[0];
    return found === undefined ? undefined : this.shown(path, found);
  }

  post(path: string, body: FunctionObject): Refused | undefined {
    const object = this.validated(path, body);
    if ('code' in object) return object.code;
    const name = String(body['name'] ?? '').trim();
    if (name === '') return { code: 400, message: 'Field[name] checked failed: required' };
    return this.create(path, name, object.value);
  }

  /** Deletes, commits and creates. With `isLost` it ends in the middle. */
  put(path: string, name: string, body: FunctionObject, isLost: boolean): Refused | undefined {
    const object = this.validated(path, { ...body, name });
    if ('code' in object) return object.code;
    this.remove(path, name);
    return isLost ? undefined : this.create(path, name, object.value);
  }

  delete(path: string, name: string): Refused | undefined {
    const { config, singular, usedIn = [] } = collectionOf(path);
    if (this.find(path, name).length === 0) return { code: 404, message: `${singular} ${name} is not defined` };
    const isUsed = usedIn.some(([type, ...options]) =>
      this.sections(config).some(
        (section) => section.type === type && options.some((option) => [section.options[option]].flat().includes(name)),
      ),
    );
    if (isUsed) return { code: 400, message: `${singular} ${name} is used` };
    this.remove(path, name);
    return undefined;
  }

  /** All sections with that name: the id of a named one, the option of an anonymous one. */
  private find(path: string, name: string): readonly Section[] {
    const { config, type, isNamed } = collectionOf(path);
    return this.sections(config).filter(
      (section) => section.type === type && (isNamed ? section.id === name : section.options['name'] === name),
    );
  }

  private remove(path: string, name: string): void {
    const { config, isKernel } = collectionOf(path);
    const found = this.find(path, name);
    if (found.length === 0) return;
    const below = found.flatMap((section) => [
      section.id,
      ...((section.options['sections'] ?? []) as readonly string[]),
    ]);
    this.files.set(
      config,
      this.sections(config).filter(({ id }) => !below.includes(id)),
    );
    // One command, however many objects had the name.
    const at = this.kernel.indexOf(`${path} ${name}`);
    if (isKernel === true && at >= 0) this.kernel.splice(at, 1);
  }

  private create(path: string, name: string, object: FunctionObject): Refused | undefined {
    const { config, type, isNamed, isKernel } = collectionOf(path);
    const taken = (id: string): boolean => this.sections(config).some((section) => section.id === id);
    if (taken(name)) return { code: 409, message: 'Conflict' };
    const { connections, members, ...options } = object as {
      readonly connections?: readonly FunctionObject[];
      readonly members?: readonly FunctionObject[];
    };
    const interfaces = (members ?? []).map((member) => String(member['interface']));
    if (new Set(interfaces).size < interfaces.length)
      return { code: 400, message: 'Same interface is used in different members' };
    const below: Section[] = [];
    for (const connection of connections ?? []) {
      const id = String(connection['name']);
      if (taken(id) || below.some((one) => one.id === id)) return { code: 409, message: 'Conflict' };
      below.push({ id, type: String(connection['conn_type']), options: { ...connection } });
    }
    for (const member of members ?? [])
      below.push({ id: `${name}_${String(member['interface'])}`, type: 'member', options: { ...member } });
    this.made += 1;
    const stored = Object.fromEntries(
      Object.entries(options).map(([key, value]) => [key, CERTIFICATES.includes(key) ? stripped(value) : value]),
    );
    const section: Section = {
      id: isNamed ? name : `cfg${this.made.toString(16).padStart(6, '0')}`,
      type,
      options: { ...stored, ...(isNamed ? {} : { name }), sections: below.map(({ id }) => id) },
    };
    // A section with such a name is not made, and nobody says so.
    if (!/^\w+$/.test(section.id)) return undefined;
    this.files.set(config, [...this.sections(config), ...below, section]);
    if (isKernel === true) this.kernel.push(`${path} ${name}`);
    return undefined;
  }

  private shown(path: string, section: Section): FunctionObject {
    const { config, isNamed } = collectionOf(path);
    const { sections: below = [], ...options } = section.options;
    const nested = (below as readonly string[]).flatMap((id) => this.sections(config).filter((one) => one.id === id));
    const certificates = CERTIFICATES.flatMap((key) =>
      options[key] === undefined ? [] : [[key, decodedAgain(options[key] as readonly Buffer[])] as const],
    );
    const byType = [
      ...nested.filter(({ type }) => type === 'tunnel'),
      ...nested.filter(({ type }) => type === 'transport'),
    ];
    return {
      ...options,
      ...Object.fromEntries(certificates),
      ...(isNamed ? { name: section.id } : {}),
      ...(path === 'mwan3/v1/policies' ? { members: nested.map((one) => ({ ...one.options, name: one.id })) } : {}),
      ...(byType.length > 0 ? { connections: byType.map(({ options: own }) => own) } : {}),
      ...(path === 'rule/v1/rules' ? { flag: options['flag'] === true } : {}),
      ...(path === 'route/v1/routes' ? { dev_val: String(options['dev']) } : {}),
    };
  }

  private validated(
    path: string,
    body: FunctionObject,
  ): { readonly value: FunctionObject } | { readonly code: Refused } {
    const { members, whole } = collectionOf(path);
    const refused = (message: string): { readonly code: Refused } => {
      const [, code, rest] = /^(\d+):([\s\S]*)$/.exec(message) ?? [];
      return { code: { code: Number(code ?? 400), message: rest ?? message } };
    };
    const result = this.fieldsOf(members, body);
    if (typeof result === 'string') return refused(result);
    const all = whole?.(result, this) ?? true;
    return all === true ? { value: result } : refused(all);
  }

  private fieldsOf(members: readonly Member[], body: FunctionObject): FunctionObject | string {
    const object: Record<string, unknown> = {};
    for (const member of members) {
      const { name, check, items, code, message = '', otherwise } = member;
      const raw = body[name];
      const value = typeof raw === 'string' ? raw.trim() : raw;
      if (value === undefined || value === null || value === '') {
        if (otherwise !== undefined) object[name] = otherwise;
        continue;
      }
      const failed = (why: string): string =>
        `${code === undefined ? '' : `${code}:`}Field[${name}] checked failed: ${message}${why === '' ? '' : ` [${why}]`}`;
      if (items !== undefined) {
        const kept = this.itemsOf(items, value);
        if (typeof kept === 'string') return failed(kept);
        object[name] = kept;
        continue;
      }
      if (typeof value === 'number') return failed('');
      const good = check?.(value, this) ?? true;
      if (good !== true) return failed(good);
      object[name] = value;
    }
    return object;
  }

  /** Every item, or why one is wrong. */
  private itemsOf(items: NonNullable<Member['items']>, list: unknown): readonly unknown[] | string {
    if (!Array.isArray(list) || list.length === 0) return 'Not an array';
    const kept: unknown[] = [];
    for (const item of list as readonly unknown[]) {
      const nested = typeof items === 'function' ? items(item, this) : this.fieldsOf(items, item as FunctionObject);
      if (typeof nested === 'string') return nested;
      kept.push(nested === true ? item : nested);
    }
    return kept;
  }
}

function collectionOf(path: string): Collection {
  const collection = COLLECTIONS[path];
  if (collection === undefined) throw new Error(`the stand-in has no collection ${path}`);
  return collection;
}

/** The files of the certificates: each part is decoded once. */
const stripped = (value: unknown): readonly Buffer[] =>
  String(value)
    .split(/[_^]+/)
    .map((part) => unb64(part));

/** What it returns: the file of the first part decoded once more, and for the others the decoded name of a file. */
const decodedAgain = (files: readonly Buffer[]): string =>
  files
    .map((file, i) => unb64(i === 0 ? file.toString('latin1') : ` /etc/ipsec.d/cacerts/x_ca_${i}.pem`).toString('utf8'))
    .join('\n');

/** As luasocket: characters that are not of base64 are skipped. */
function unb64(text: string): Buffer {
  const letters = text.replaceAll(/[^A-Za-z0-9+/=]/g, '');
  return Buffer.concat((letters.match(/.{4}/g) ?? []).map((group) => Buffer.from(group, 'base64')));
}
