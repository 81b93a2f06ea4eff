/** Where a command talks to and as whom: flags first, then the environment, then what a server started here left behind. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { client, type Client } from '../client.ts'

export type Environment = Readonly<Record<string, string | undefined>>
export interface Place {
  readonly url: readonly string[]
  readonly key: string
  readonly project: string
}
/** A mistake of the person at the keyboard: shown as one sentence. */
export class Mistake extends Error {
  override readonly name = 'Mistake'
}

/** Add the flags that say where. */
export const placed = (command: Command): Command =>
  command
    .option(
      '--url <urls>',
      'address of the service, or several, comma-separated (BATON_URL; http://127.0.0.1:8080)',
    )
    .option('--key <key>', 'API key (BATON_KEY; else the owner key of a server started here)')
    .option('--project <handle>', 'project (BATON_PROJECT; default)')

/** The files in which servers started here keep their owner key, in the order they are looked for. */
export const keyFiles = (env: Environment): string[] => {
  const data = env['BATON_DATA'] || '.baton'
  return [join(data, 'root.key'), join(data, 'cluster', 'root.key')]
}

/** The place that flags and environment name. @throws Mistake without a key. */
export function placeOf(
  flags: { readonly url?: string; readonly key?: string; readonly project?: string },
  env: Environment,
): Place {
  const url = (flags.url ?? (env['BATON_URL'] || 'http://127.0.0.1:8080'))
    .split(',')
    .map((address) => address.trim())
    .filter((address) => address !== '')
  const wrong = url.find((address) => !/^https?:\/\/[^/]/.test(address))
  if (wrong !== undefined || url.length === 0)
    throw new Mistake(
      `--url must be an address such as http://127.0.0.1:8080, not ${JSON.stringify(wrong ?? '')}.`,
    )
  const file = keyFiles(env).find((name) => existsSync(name))
  const key =
    flags.key ??
    (env['BATON_KEY'] || (file === undefined ? undefined : readFileSync(file, 'utf8').trim()))
  if (!key)
    throw new Mistake(
      `There is no API key: give --key, set BATON_KEY, or run this where a server keeps its owner key (${keyFiles(env)[0]}). Start one with: npm start`,
    )
  return { url, key, project: flags.project ?? (env['BATON_PROJECT'] || 'default') }
}

/** A client for the place that a command's flags name. */
export const clientFor = (command: Command, env: Environment): Client =>
  client(placeOf(command.optsWithGlobals(), env))
