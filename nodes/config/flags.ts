/** Reads settings that are given as flags. */
import { byFlag, type Name, table } from './settings.ts'

/**
 * Returns the texts of settings that are given as flags: `--port 8080` or `--port=8080`. A flag
 * without a value, such as `--anonymous-worker`, means `on` if its default is `off`.
 * @param faults receives the faults of the flags.
 */
export function readFlags(argv: readonly string[], faults: string[]): Map<Name, string> {
  const given = new Map<Name, string>()
  for (let i = 0; i < argv.length; i++) {
    const [word = '', ...rest] = (argv[i] ?? '').split('=')
    const name = byFlag.get(word)
    if (!name) {
      faults.push(
        word.startsWith('-')
          ? `${word} is not a setting; --help lists all settings`
          : `${word} is not a setting; settings begin with --`,
      )
      // The value of an unknown flag is skipped, so that it is not reported as a second fault.
      if (word.startsWith('--') && rest.length === 0 && argv[i + 1]?.startsWith('-') === false) i++
      continue
    }
    const next = argv[i + 1]
    if (rest.length > 0) given.set(name, rest.join('='))
    else if (next !== undefined && !next.startsWith('--')) given.set(name, argv[++i] ?? '')
    else if (table[name].standard === 'off') given.set(name, 'on')
    else faults.push(`${word} needs a value: ${table[name].description}`)
  }
  return given
}
