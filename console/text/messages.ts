/**
 * The texts of the console. Each page declares its texts in English, in its `text.ts`. Every other
 * language has a folder with translations of the same texts. The folder of the user's language
 * (`language.ts`) is loaded before the first page.
 *
 * Invariant: a user's text does not affect the direction of the sentence around it, because every
 * text value of a sentence is isolated here.
 */
import { isolate } from '../../client/isolate.ts'
import { type Language, language } from './language.ts'

export { plural } from './plural.ts'

/** A text, or a function of values that returns one. */
type Text = string | ((...values: never[]) => string)
/** The texts of one part of the console, by name. */
export type Texts = Readonly<Record<string, Text>>
/** The texts of a part in any language: the same names, and functions with the same parameters. */
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
// Parts are declared while modules are evaluated, so the translation must be loaded first. If it
// cannot be loaded, the page is in English.
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
/** Makes a text function isolate the strings among its values. Other texts are unchanged. */
const isolated = (text: Text): Text =>
  typeof text === 'string' ? text : (...values) => text(...(values.map(isolatedValue) as never[]))

/**
 * Declares the English texts of one part of the console.
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
