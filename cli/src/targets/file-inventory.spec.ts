import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import promises from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SILENT } from '#libs/process';
import { until } from '#libs/testing';
import type { Target } from '../../../services/applier/src/shell/targets/index.js';
import { fileInventory } from './file-inventory.js';
import { readFunctions } from './function-inventory.js';

let folder: string;
let file: string;
let stop: () => void = () => undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-inventory-'));
  file = join(folder, 'functions.yaml');
  writeFileSync(join(folder, 'password'), 'first');
  list('cnf-1');
});
afterEach(() => {
  stop();
  rmSync(folder, { recursive: true, force: true });
});

const list = (...names: readonly string[]): void => listAs(undefined, ...names);
const listAs = (name: string | undefined, ...names: readonly string[]): void =>
  writeFileSync(
    file,
    JSON.stringify({
      name,
      functions: names.map((name) => ({ name, url: `https://${name}`, passwordFile: 'password' })),
    }),
  );

/** The lists of the inventory, as `name password`, and the errors that it logged. */
function begin() {
  const lists: string[][] = [];
  const errors: string[] = [];
  const problems: string[] = [];
  const inventory = fileInventory({
    kind: 'functions',
    file,
    read: readFunctions,
    target: ({ name, password }) => ({ node: name, settings: password }) as unknown as Target,
    log: { ...SILENT, error: ({ error }: { readonly error?: string }) => void errors.push(error ?? '') },
    lookMs: 5,
  });
  stop = inventory.start({ clock: () => 0, checkMs: 1 }, ({ targets, problems: found = [] }) => {
    problems.splice(0, problems.length, ...found.map(({ object, reason }) => `${object}: ${reason}`));
    const list = targets.map(({ node, settings }) => `${node} ${settings}`);
    if (list.join() !== lists.at(-1)?.join()) lists.push(list);
  });
  return { lists, errors, problems, name: () => inventory.name() };
}

it('calls back with the targets of a file, and again when the file changes', async () => {
  const { lists } = begin();
  expect(lists).toEqual([['cnf-1 first']]);
  list('cnf-1', 'cnf-2');
  await until(() => lists.length === 2, 'the change is noticed');
  expect(lists[1]).toEqual(['cnf-1 first', 'cnf-2 first']);
});

it('notices a new password in a file that an entry refers to, also if it is replaced', async () => {
  const { lists } = begin();
  writeFileSync(join(folder, 'password'), 'other');
  await until(() => lists.length === 2, 'the new password is noticed');
  writeFileSync(join(folder, 'new'), 'third');
  renameSync(join(folder, 'new'), join(folder, 'password'));
  await until(() => lists.length === 3, 'the replaced file is noticed');
  expect(lists.slice(1)).toEqual([['cnf-1 other'], ['cnf-1 third']]);
});

it('keeps the last good list while the file or what it refers to is wrong, and says where', async () => {
  const { lists, errors } = begin();
  writeFileSync(file, 'functions: [');
  await until(() => errors.length === 1, 'the error is logged');
  list('cnf-1');
  rmSync(join(folder, 'password'));
  await until(() => errors.some((error) => error.includes('passwordFile')), 'the missing file is logged');
  expect(errors[0]).toContain(`--inventory ${file} is not valid YAML`);
  expect(errors.at(-1)).toBe(
    `--inventory ${file}: functions[0].passwordFile: ${join(folder, 'password')}: no such file or folder`,
  );
  expect(lists).toEqual([['cnf-1 first']]);
  writeFileSync(join(folder, 'password'), 'repaired');
  await until(() => lists.length === 2, 'the repaired file is noticed');
  expect(lists[1]).toEqual(['cnf-1 repaired']);
});

it('tells sluice doctor what is wrong, until the file is as it was', async () => {
  const { lists, problems } = begin();
  list('cnf-1', 'cnf-1');
  await until(() => problems.length === 1, 'the problem is shown');
  expect(problems).toEqual([
    `what is new in the inventory: --inventory ${file}: functions[1].name: is the same as in functions[0]: "cnf-1"`,
  ]);
  list('cnf-1');
  await until(() => problems.length === 0, 'the problem is over');
  expect(lists).toEqual([['cnf-1 first']]);
});

it('refuses a file that is wrong at the start, and calls nothing after it was stopped', () => {
  const { lists } = begin();
  stop();
  list('cnf-1', 'cnf-1');
  expect(() => begin()).toThrow('functions[1].name: is the same as in functions[0]');
  expect(lists).toEqual([['cnf-1 first']]);
});

it('shares its targets with copies whose files have the same name', async () => {
  expect(await begin().name()).toBe('functions');
  stop();
  listAs('edge', 'cnf-1');
  const { lists, errors, name } = begin();
  expect(await name()).toBe('functions-edge');
  listAs('edge', 'cnf-1', 'cnf-2');
  await until(() => lists.length === 2, 'the change is noticed');
  listAs('core', 'cnf-3');
  await until(() => errors.length === 1, 'the other name is noticed');
  expect(errors[0]).toContain('name was edge when this applier started, and is core now: restart it');
  expect(lists).toHaveLength(2);
});

it('looks at the list each time, and at a hundred of the files that it refers to', async () => {
  const passwords = Array.from({ length: 250 }, (_, i) => `password-${i}`);
  for (const name of passwords) writeFileSync(join(folder, name), 'first');
  const functions = passwords.map((passwordFile, i) => ({ name: `cnf-${i}`, url: `https://cnf-${i}`, passwordFile }));
  writeFileSync(file, JSON.stringify({ functions }));
  const looked: string[] = [];
  const { stat } = promises;
  const spy = jest.spyOn(promises, 'stat').mockImplementation((path) => {
    looked.push(String(path));
    return stat(path);
  });
  const { lists } = begin();
  await until(() => new Set(looked).size === 251, 'it has looked at all');
  const looks = looked.join(' ').split(file).slice(1, 4);
  expect(looks.map((others) => others.split(' ').filter((path) => path !== '').length)).toEqual([100, 100, 50]);
  writeFileSync(join(folder, 'password-249'), 'second');
  await until(() => lists.at(-1)?.includes('cnf-249 second'), 'the last one is noticed');
  spy.mockRestore();
});
