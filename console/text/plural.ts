/** Formats a number with its noun, according to the plural rules of the language. */
import { locale } from './language.ts'

const number = new Intl.NumberFormat(locale)
const rules = new Intl.PluralRules(locale)

/**
 * Returns a number with the matching form of a noun: `plural(2, 'run', 'runs')`.
 * @param further additional forms, such as `few` and `many`, for languages with more than two.
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
