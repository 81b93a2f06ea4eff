/** Numbers with nouns, by the plural rules of the language. */
import { locale } from './language.ts'

const number = new Intl.NumberFormat(locale)
const rules = new Intl.PluralRules(locale)

/**
 * Returns a number with the form of a noun that belongs to it: `plural(2, 'run', 'runs')`.
 * @param further the forms of languages that have more than two, such as `few` and `many`.
 */
export const plural = (
  count: number,
  one: string,
  other: string,
  further: Partial<Record<Intl.LDMLPluralRule, string>> = {},
): string => {
  const rule = rules.select(count)
  return `${number.format(count)} ${further[rule] ?? (rule === 'one' ? one : other)}`
}
