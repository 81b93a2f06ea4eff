/**
 * Replaces the variables in the texts of blueprint files. `${NAME}` is the value of an environment
 * variable. `${NAME:-text}` uses the default if the variable is absent or empty. `$${` is a literal
 * `${`. Service expressions, `${{ … }}`, are left unchanged. Invariant: `expand` restores the input
 * of `escapeVariables`.
 */
import { closingBraces } from '../../../protocol/rules/expressions/tokens.ts'
import type { Environment } from '../mistake.ts'

const OPEN = '${{'
const VARIABLE = /\$\$\{(?!\{)|\$\{([A-Z_][A-Z0-9_]*)(?::-([^}]*))?\}/g
const LITERAL = /\$\{(?!\{)/g

/** Applies `change` to the parts of a text outside of service expressions. */
function outside(text: string, change: (part: string) => string): string {
  let result = ''
  let from = 0
  for (let open = text.indexOf(OPEN); open >= 0; open = text.indexOf(OPEN, from)) {
    const close = closingBraces(text, open + OPEN.length)
    if (close === undefined) break
    result += change(text.slice(from, open)) + text.slice(open, close + 2)
    from = close + 2
  }
  return result + change(text.slice(from))
}

/**
 * Replaces the variables of a text.
 * @param missing called with the name of each variable that has no value and no default.
 */
export const expand = (text: string, env: Environment, missing: (name: string) => void): string =>
  !text.includes('${')
    ? text
    : outside(text, (part) =>
        part.replace(VARIABLE, (_, name: string | undefined, otherwise: string | undefined) => {
          if (name === undefined) return '${'
          const value = Object.hasOwn(env, name) ? env[name] : undefined
          if (otherwise !== undefined) return value || otherwise
          if (value === undefined) missing(name)
          return value ?? ''
        }),
      )

/** Escapes a text so that `expand` returns the original text. */
export const escapeVariables = (text: string): string =>
  text.search(VARIABLE) < 0 ? text : outside(text, (part) => part.replace(LITERAL, '$$$${'))
