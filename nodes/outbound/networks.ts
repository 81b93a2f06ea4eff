/** The networks that workers of environments may reach as hosts of repositories. */
import type { Config } from '../config.ts'

const LOOPBACK = ['127.0.0.0/8', '::1/128']
const isLoopback = (host: string): boolean => /^(localhost|127\.[\d.]+|\[?::1\]?)$/.test(host)

/**
 * Networks that hosts of repositories may be in, besides public addresses. On an installation that
 * listens only on loopback, each client that can declare a host can also reach loopback directly, so that
 * repositories of the same machine need no setting.
 */
export const repositoryNetworks = ({
  host,
  outbound_allow,
}: Pick<Config, 'host' | 'outbound_allow'>): readonly string[] => [
  ...outbound_allow,
  ...(isLoopback(host) ? LOOPBACK : []),
]
