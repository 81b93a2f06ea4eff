/**
 * The texts of the console. Each page declares its texts in English. A language is a file that
 * registers other texts under the same names.
 *
 * Invariant: a text of a user inside a sentence does not affect the direction of its words, because
 * every text that a sentence receives is isolated here.
 */
import { isolate } from './isolate.ts'

/** A text, or a function of values that returns one. */
type Text = string | ((...values: never[]) => string)
/** The texts of one part of the console, by name. */
export type Texts = Readonly<Record<string, Text>>

const isolatedValue = (value: unknown): unknown =>
  typeof value === 'string'
    ? isolate(value)
    : Array.isArray(value)
      ? value.map(isolatedValue)
      : value
/** Returns a sentence that isolates the texts among its values. */
const isolated = (text: Text): Text =>
  typeof text === 'string' ? text : (...values) => text(...(values.map(isolatedValue) as never[]))

const languages = new Map<string, Map<string, Texts>>()

/** The languages that can be shown, the first of the browser's languages among them. */
const chosen = (): string =>
  (typeof navigator === 'undefined' ? [] : navigator.languages)
    .map((tag) => tag.split('-')[0] ?? '')
    .find((language) => language === 'en' || languages.has(language)) ?? 'en'

/**
 * Declares the English texts of a part.
 * @param part a unique name, such as `runs`.
 * @returns the texts in the language of the browser. A text without a translation is English.
 */
export function messages<const T extends Texts>(part: string, english: T): T {
  const all: Texts = { ...english, ...languages.get(chosen())?.get(part) }
  return Object.fromEntries(
    Object.entries(all).map(([name, text]) => [name, isolated(text)]),
  ) as unknown as T
}

/** Adds the texts of a language. It must run before the parts are loaded. */
export function addLanguage(language: string, parts: Readonly<Record<string, Texts>>): void {
  languages.set(language, new Map(Object.entries(parts)))
}

const rules = new Intl.PluralRules('en')
/** Returns a number with the form of a noun that belongs to it: `plural(2, 'run', 'runs')`. */
export const plural = (count: number, one: string, other: string): string =>
  `${new Intl.NumberFormat().format(count)} ${rules.select(count) === 'one' ? one : other}`
