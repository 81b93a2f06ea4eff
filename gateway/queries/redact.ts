/**
 * Removes credentials from text that people will see: keys and tokens of this installation, tokens
 * of repository hosts, and passwords in URLs.
 */

const REDACTED = '[redacted]'
/**
 * Patterns of tokens of GitHub and GitLab
 * (https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github,
 * https://docs.gitlab.com/security/tokens/#token-prefixes).
 */
const HOST_TOKENS = [
  'gh[pousr]_[A-Za-z0-9_]{10,}',
  'github_pat_[A-Za-z0-9_]{10,}',
  'gl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_.-]{10,}',
]
/** Matches the user and password of a URL. */
const USER_INFO = /(?<=:\/\/)[^\s/@:]{0,256}:[^\s/@]{1,1024}@/g

/**
 * Returns a function that replaces credentials in a text.
 * @param key_prefix prefix of API keys without the underscore. It consists of letters and digits.
 */
export function redactionOf(key_prefix: string): (text: string) => string {
  // API keys, personal tokens, and the credentials of environment workers.
  const own = `${key_prefix}(?:c|env)?_[A-Za-z0-9_-]{16,}`
  const tokens = new RegExp(`(?<![A-Za-z0-9_-])(?:${[own, ...HOST_TOKENS].join('|')})`, 'g')
  return (text) => text.replace(tokens, REDACTED).replace(USER_INFO, `${REDACTED}@`)
}
