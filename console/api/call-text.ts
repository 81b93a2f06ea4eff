/** Renders API calls as `curl`, CLI and TypeScript snippets. */
import { requestOf } from './client.ts'

/** Quotes a text for a POSIX shell. */
export const shellQuote = (value: string): string =>
  /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`

/** Returns a call as a `curl` command. The command reads the key from `BATON_KEY`. */
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
/** Returns a call as a command of the Baton CLI. */
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
/** Module specifier of the client library. */
const CLIENT = 'baton/client'
/** Returns a call as a TypeScript program. The program reads the key from `BATON_KEY`. */
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
