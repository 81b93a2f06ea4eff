/**
 * The language of the console, and the locale of its numbers and times. It is chosen once for the
 * life of the page: by the person in the account, otherwise by the browser.
 */
import { store, stored } from '../shell/theme.ts'

/** The languages by tag, each with its own name. English is complete by definition. */
export const languages = { en: 'English', de: 'Deutsch' } as const
export type Language = keyof typeof languages

const KEY = 'console.language'
/** The languages that are written from right to left. */
const FROM_RIGHT: ReadonlySet<string> = new Set(['ar', 'fa', 'he', 'ur'])

const isLanguage = (tag: string | undefined): tag is Language =>
  tag !== undefined && Object.hasOwn(languages, tag)
const baseOf = (tag: string): string => tag.split('-')[0] ?? ''

/** Returns the language and the locale for a choice and the tags of the browser, best first. */
export function languageOf(
  choice: string | undefined,
  tags: readonly string[],
): { readonly language: Language; readonly locale: string } {
  const language = isLanguage(choice) ? choice : (tags.map(baseOf).find(isLanguage) ?? 'en')
  // The region decides about dates and numbers, such as those of en-GB.
  return { language, locale: tags.find((tag) => baseOf(tag) === language) ?? language }
}

/** The language that the person has chosen; undefined: that of the browser. */
export const chosenLanguage: string | undefined = isLanguage(stored(KEY)) ? stored(KEY) : undefined
/** The language of the texts, and the locale for `Intl`. */
export const { language, locale } = languageOf(
  chosenLanguage,
  typeof navigator === 'undefined' ? [] : navigator.languages,
)

/** Chooses a language, or with undefined that of the browser, and loads the page again. */
export function chooseLanguage(choice: string | undefined): void {
  store(KEY, choice)
  location.reload()
}
/** Names the language of the document, for screen readers, hyphenation and direction. */
export function applyLanguage(): void {
  document.documentElement.lang = language
  document.documentElement.dir = FROM_RIGHT.has(language) ? 'rtl' : 'ltr'
}
