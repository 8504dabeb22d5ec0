/* The least that a program can do. bench/startup.sh links it to the libraries of each program. */
int main(void)
{
    return 0;
}
