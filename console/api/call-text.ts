/** Calls of the API as texts that work outside of the console. */
import { requestOf } from './client.ts'

/** Quotes a text for a POSIX shell. */
export const shellQuote = (value: string): string =>
  /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`

/** Returns a call as a `curl` command. The key is read from the environment. */
export function curlOf(
  name: string,
  input: Readonly<Record<string, unknown>>,
  origin = location.origin,
): string {
  const { method, path, body } = requestOf(name, input)
  return [
    `curl${method === 'GET' ? '' : ` -X ${method}`} ${shellQuote(`${origin}${path}`)}`,
    `-H "Authorization: Bearer $BATON_KEY"`,
    ...(body === undefined
      ? []
      : [`-H 'Content-Type: application/json'`, `-d ${shellQuote(JSON.stringify(body))}`]),
  ].join(' \\\n  ')
}
/** Returns a call as a command of the command line. */
export function cliOf(name: string, input: Readonly<Record<string, unknown>>): string {
  const options = Object.entries(input).flatMap(([member, value]) =>
    value === undefined
      ? []
      : [
          `--${member.replaceAll('_', '-')} ${shellQuote(typeof value === 'string' ? value : JSON.stringify(value))}`,
        ],
  )
  return ['npm run baton -- call', name, ...options].join(' ')
}
/** The module of the client library. */
const CLIENT = 'baton/client'
/** Returns a call as a program in TypeScript. */
export function typescriptOf(
  name: string,
  input: Readonly<Record<string, unknown>>,
  origin = location.origin,
): string {
  const { project, ...rest } = input
  return [
    `import { client } from ${JSON.stringify(CLIENT)}`,
    '',
    `const baton = client({ url: ${JSON.stringify(origin)}, key: process.env.BATON_KEY` +
      `${project === undefined ? '' : `, project: ${JSON.stringify(project)}`} })`,
    `const answer = await baton.${name}(${JSON.stringify(rest, undefined, 2)})`,
  ].join('\n')
}
