/**
 * The language of the console, and the locale of its numbers and times. Both are determined by the
 * person's choice, which is stored in the browser, or else by the browser's languages. Neither
 * changes while the page is open.
 */
import { store, stored } from '../shell/theme.ts'

/** The languages by tag. Each name is in the language itself. */
export const languages = { en: 'English', de: 'Deutsch' } as const
export type Language = keyof typeof languages

const KEY = 'console.language'
/** The languages that are written from right to left, including languages without a translation. */
const FROM_RIGHT: ReadonlySet<string> = new Set(['ar', 'fa', 'he', 'ur'])

const isLanguage = (tag: string | undefined): tag is Language =>
  tag !== undefined && Object.hasOwn(languages, tag)
const baseOf = (tag: string): string => tag.split('-')[0] ?? ''

/**
 * Returns the language and the locale for a choice and the language tags of the browser, in order
 * of preference.
 */
export function languageOf(
  choice: string | undefined,
  tags: readonly string[],
): { readonly language: Language; readonly locale: string } {
  const language = isLanguage(choice) ? choice : (tags.map(baseOf).find(isLanguage) ?? 'en')
  // A tag with a region, such as en-GB, selects the formats of dates and numbers.
  return { language, locale: tags.find((tag) => baseOf(tag) === language) ?? language }
}

/** The language that the person has chosen; undefined for the browser's language. */
export const chosenLanguage: string | undefined = isLanguage(stored(KEY)) ? stored(KEY) : undefined
/** The language of the texts, and the locale for `Intl`. */
export const { language, locale } = languageOf(
  chosenLanguage,
  typeof navigator === 'undefined' ? [] : navigator.languages,
)

/** Stores the chosen language and reloads the page. Undefined selects the browser's language. */
export function chooseLanguage(choice: string | undefined): void {
  store(KEY, choice)
  location.reload()
}
/**
 * Sets the language and the direction of the document, for screen readers, hyphenation and layout.
 */
export function applyLanguage(): void {
  document.documentElement.lang = language
  document.documentElement.dir = FROM_RIGHT.has(language) ? 'rtl' : 'ltr'
}
