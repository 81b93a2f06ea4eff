/**
 * Full names of repositories, such as `owner/name` or, on hosts with nested groups,
 * `group/subgroup/name`. The names become parts of URLs and arguments of git. Therefore a segment
 * begins with neither `-` nor `..`, and contains no character that URLs must encode.
 */
const SEGMENT = '\\.?[A-Za-z0-9_][A-Za-z0-9._-]{0,98}'
/** Pattern of full names, for schemas. */
export const REPOSITORY_NAME = `^${SEGMENT}(/${SEGMENT}){1,19}$`
/** Maximum length of a full name in characters. */
export const REPOSITORY_NAME_LENGTH = 256

const pattern = new RegExp(REPOSITORY_NAME)
/** Whether a text is the full name of a repository. No segment may end with `.git`. */
export const isRepositoryName = (text: string): boolean =>
  text.length <= REPOSITORY_NAME_LENGTH && pattern.test(text) && !/\.git(\/|$)/i.test(text)
