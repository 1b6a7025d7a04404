import 'reflect-metadata';
import type { Class } from './checked.js';

/** What the decorated class is for, in schemas and the reference. */
export const About = (text: string): ClassDecorator => define(ABOUT, text);

/** What each field of the decorated class means, with its unit and its default. */
export const Fields = (texts: Readonly<Record<string, string>>): ClassDecorator => define(FIELDS, texts);

/** What the class is for; undefined without a description. */
export const aboutOf = (type: Class): string | undefined => Reflect.getMetadata(ABOUT, type) as string | undefined;

/** What a field means, in the class or in one that it extends. */
export function descriptionOf(type: Class, field: string): string | undefined {
  for (let at: object | null = type; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    const texts = Reflect.getOwnMetadata(FIELDS, at) as Readonly<Record<string, string>> | undefined;
    if (texts?.[field] !== undefined) return texts[field];
  }
  return undefined;
}

const ABOUT = 'sluice:about';
const FIELDS = 'sluice:fields';

const define =
  (key: string, value: unknown): ClassDecorator =>
  (target) =>
    Reflect.defineMetadata(key, value, target);
