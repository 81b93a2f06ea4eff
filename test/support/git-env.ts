/** Returns environment variables that make git ignore the system configuration and never prompt. */
export const gitEnv = (home: string): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'],
  HOME: home,
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_AUTHOR_NAME: 'A',
  GIT_AUTHOR_EMAIL: 'a@example.org',
  GIT_COMMITTER_NAME: 'A',
  GIT_COMMITTER_EMAIL: 'a@example.org',
})
