# One image for everything: `service merger`, `applier --node w-1`, `status`, … are arguments of its entry point.

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run build

FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# Compiled code of each platform is optional for npm; the bundled Node.js is not needed here.
RUN npm ci --ignore-scripts --omit=dev --no-audit --no-fund && rm -rf node_modules/node-linux-* node_modules/.bin/node

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
# Fresh volumes take over the owner: an applier's journal, and the root of an example node.
RUN install -d -o node -g node /var/lib/sluice /node
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json LICENSE ./
COPY bin bin
USER node
ENTRYPOINT ["node", "bin/sluice"]
CMD ["--help"]
