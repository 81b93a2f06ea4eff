/**
 * Determines the environment variables of commands. Commands inherit ordinary variables, and those
 * listed in the settings, from the worker's process. They also receive the service's variables that
 * identify the environment and its credential. A workspace belongs to a single tenant, so its
 * commands may use the credential of its worker.
 */
import type { Settings, Variables } from './settings.ts'

const ordinary: ReadonlySet<string> = new Set(
  [
    'HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR XDG_CACHE_HOME XDG_RUNTIME_DIR',
    'HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy',
    'SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO GIT_CONFIG_GLOBAL',
  ]
    .join(' ')
    .split(' '),
)
const families = /^(LC_[A-Z]+|GIT_CONFIG_(COUNT|KEY_\d+|VALUE_\d+))$/
const ofService = [
  'API_URL',
  'API_KEY',
  'PROJECT',
  'WORKER_ENVIRONMENT_ID',
  'RUNTIME_WORKSPACE',
] as const
const PATH = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/**
 * Returns the variables of every command.
 * @param gitConfig git configuration file that installs the credential helper.
 */
export function commandVariables(
  variables: Variables,
  { brand, workspace, passed }: Pick<Settings, 'brand' | 'workspace' | 'passed'>,
  gitConfig: string,
): Readonly<Record<string, string>> {
  const further = new Set([...passed, ...ofService.map((name) => `${brand}_${name}`)])
  const result: Record<string, string> = {}
  for (const [name, value] of Object.entries(variables))
    if (value !== undefined && (ordinary.has(name) || families.test(name) || further.has(name)))
      result[name] = value
  const path = (variables['PATH'] ?? '').split(':').filter((folder) => folder !== '')
  return {
    HOME: workspace,
    LANG: 'C.UTF-8',
    ...result,
    PATH: [...new Set([...path, ...PATH])].join(':'),
    TERM: 'dumb',
    GIT_CONFIG_SYSTEM: gitConfig,
    GIT_TERMINAL_PROMPT: '0',
    PAGER: 'cat',
  }
}
