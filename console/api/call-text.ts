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
/** Returns a command of the Baton CLI for a project; the default project is not named. */
export const commandOf = (command: string, project: unknown): string =>
  `npm run baton -- ${command}` +
  (typeof project !== 'string' || project === 'default' ? '' : ` --project ${shellQuote(project)}`)
/** Returns a call as a command of the Baton CLI. */
export function cliOf(
  name: string,
  { project, ...input }: Readonly<Record<string, unknown>>,
): string {
  const body = JSON.stringify(input)
  return commandOf(`call ${name}`, project) + (body === '{}' ? '' : ` --body ${shellQuote(body)}`)
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
    `const baton = client({ url: ${JSON.stringify(origin)}, key: process.env.BATON_KEY ?? ''` +
      `${project === undefined ? '' : `, project: ${JSON.stringify(project)}`} })`,
    `const answer = await baton.${name}(${JSON.stringify(rest, undefined, 2)})`,
  ].join('\n')
}
