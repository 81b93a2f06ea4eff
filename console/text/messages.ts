/**
 * The texts of the console. Each page declares its texts in English, in its `text.ts`. Another
 * language is a folder of files with the same texts, which is loaded before the first page when the
 * person reads it (`language.ts`).
 *
 * Invariant: a text of a user inside a sentence does not affect the direction of its words, because
 * every text that a sentence receives is isolated here.
 */
import { isolate } from './isolate.ts'
import { type Language, language } from './language.ts'

export { plural } from './plural.ts'

/** A text, or a function of values that returns one. */
type Text = string | ((...values: never[]) => string)
/** The texts of one part of the console, by name. */
export type Texts = Readonly<Record<string, Text>>
/** The texts of a part in any language: the same names, and functions of the same values. */
export type Translated<T extends Texts> = {
  readonly [N in keyof T]: T[N] extends (...values: infer V) => string
    ? (...values: V) => string
    : string
}
/** The texts of a language by part. */
export type Translation = Readonly<Record<string, Texts>>

const translations: {
  readonly [L in Exclude<Language, 'en'>]: () => Promise<{ readonly default: Translation }>
} = {
  de: () => import('./de/all.ts'),
}
// Parts are declared while modules are evaluated, so the language must be there before. A page
// without its language is better than no page.
const translation: Translation =
  language === 'en'
    ? {}
    : await translations[language]().then(
        (all) => all.default,
        () => ({}),
      )

const isolatedValue = (value: unknown): unknown =>
  typeof value === 'string'
    ? isolate(value)
    : Array.isArray(value)
      ? value.map(isolatedValue)
      : value
/** Returns a sentence that isolates the texts among its values. */
const isolated = (text: Text): Text =>
  typeof text === 'string' ? text : (...values) => text(...(values.map(isolatedValue) as never[]))

/**
 * Declares the English texts of a part.
 * @param part a unique name, such as `runs`.
 * @returns the texts in the language of the page.
 */
export const messages = <const T extends Texts>(part: string, english: T): Translated<T> =>
  Object.fromEntries(
    Object.entries({ ...english, ...translation[part] }).map(([name, text]) => [
      name,
      isolated(text),
    ]),
  ) as unknown as Translated<T>
